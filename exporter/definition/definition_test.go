package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gpumeter/gpumeter"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

const archive = "testdata/sample.txtar"

// The metrics of the sample, as the generator would describe them.
var descs = []*metric.Desc{
	{Name: "gpu.power.limit", Prom: "gpu_power_limit_watts", Unit: "W", Help: "Power that may be drawn.", Scope: "device", Group: "power"},
	{Name: "gpu.partition.power.limit", Prom: "gpu_partition_power_limit_watts", Unit: "W", Help: "Power that may be drawn.", Scope: "partition", Group: "power"},
	{Name: "gpumeter.wait.duration", Prom: "gpumeter_wait_duration_seconds", Unit: "s", Kind: metric.KindHistogram, Help: "How long it waited.", Scope: "self", Group: "wait", OptIn: true},
	{Name: "gpumeter.foreign.duration", Prom: "gpumeter_foreign_duration_seconds", Unit: "s", Kind: metric.KindHistogram, Help: "How long others waited.", Scope: "self", Group: "wait"},
	{Name: "gpumeter.load", Prom: "gpumeter_load_ratio", Unit: "1", Help: "Share of the time at work.", Scope: "self", Group: "wait"},
}

func sample(t *testing.T) (root fstest.MapFS, whole *txtar.Archive) {
	t.Helper()
	raw, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	whole = txtar.Parse(raw)
	root = fstest.MapFS{}
	for _, f := range whole.Files {
		if strings.HasPrefix(f.Name, "spec/") {
			root[f.Name] = &fstest.MapFile{Data: f.Data}
		}
	}
	root["spec/data/xids.yaml"] = &fstest.MapFile{Data: []byte(sampleXIDs)}
	return root, whole
}

func TestGolden(t *testing.T) {
	root, whole := sample(t)
	got := &txtar.Archive{Comment: whole.Comment}
	for _, f := range whole.Files {
		if root[f.Name] != nil {
			got.Files = append(got.Files, f)
		}
	}
	for _, c := range []struct {
		file, format string
		names        []string
	}{
		{"told/list.txt", "text", nil},
		{"told/all.txt", "text", []string{"power", "wait"}},
		{"told/partition.json", "json", []string{"gpu_partition_power_limit_watts"}},
		{"told/wait.json", "json", []string{"gpumeter_wait_*"}},
	} {
		var b bytes.Buffer
		if err := Write(&b, Sources{root, sampleRules, descs}, c.names, c.format); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(b.String(), "\n") {
			if c.file == "told/all.txt" && len(line) > width || strings.TrimRight(line, " ") != line {
				t.Errorf("%s: too long, or ends with a blank: %q", c.file, line)
			}
		}
		got.Files = append(got.Files, txtar.File{Name: c.file, Data: b.Bytes()})
	}
	if *update {
		if err := os.WriteFile(archive, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(txtar.Format(whole)), string(txtar.Format(got))); diff != "" {
		t.Errorf("not as in %s; -update writes it anew (-want +got):\n%s", archive, diff)
	}
}

// sampleXIDs are the XID errors beside the sample.
const sampleXIDs = `source: https://example.org/xids
date: "2025-10-29"
xids:
  - {code: 79, mnemonic: FALLEN_OFF_THE_BUS, brief: It is gone., severity: critical, who: operator, action: reboot, advice: Restart., note: It may be back.}
`

// sampleRules are the alerts beside the sample.
var sampleRules = fstest.MapFS{"rules/plain/fleet.yaml": {Data: []byte(`groups:
  - name: fleet
    rules:
      - record: node:x
        expr: x
      - alert: GPUIdleWaste
        expr: |2-
            a
          and
            b
        for: 30m
        labels: {severity: warning}
        annotations: {summary: A GPU is idle., description: "Held, and idle.", runbook_url: https://example.org/idle}
      - alert: GPUGone
        expr: c
`)}}

// told is what Write prints as JSON, decoded, or its error.
func told(t *testing.T, root fs.FS, descs []*metric.Desc, names ...string) ([]definition, error) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, Sources{root, sampleRules, descs}, names, "json"); err != nil {
		return nil, err
	}
	var out []definition
	if err := json.Unmarshal(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

func TestNames(t *testing.T) {
	root, _ := sample(t)
	for _, c := range []struct{ names, want string }{
		{"gpu.power.limit", "gpu_power_limit_watts"},
		{"gpu_power_limit_watts", "gpu_power_limit_watts"},
		{"power", "gpu_power_limit_watts gpu_partition_power_limit_watts"},
		{"gpumeter_wait_duration_seconds_bucket", "gpumeter_wait_duration_seconds"},
		{"*_ratio", "gpumeter_load_ratio"},
		{"gpumeter.load gpu.power.limit gpumeter.load", "gpu_power_limit_watts gpumeter_load_ratio"}, // as exposed, once
		{"DCGM_LIMIT", "gpu_power_limit_watts gpu_partition_power_limit_watts"},
		{"hw.power.limit", "gpu_power_limit_watts gpu_partition_power_limit_watts"},
		{"gpu.power", "gpu_power_limit_watts"},
		{"gpu.power.", "gpu_power_limit_watts"},
		{"gpu_partition_power", "gpu_partition_power_limit_watts"},
		{"gpumeter_wait", "gpumeter_wait_duration_seconds"},
		{"gpumeter.wait.duration", "gpumeter_wait_duration_seconds"}, // ours, whatever others call so
	} {
		found, err := told(t, root, descs, strings.Fields(c.names)...)
		if err != nil {
			t.Errorf("%s: %v", c.names, err)
		}
		var got []string
		for _, d := range found {
			got = append(got, d.Prometheus)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: found %q, want %s", c.names, got, c.want)
		}
	}
}

func TestWrongNames(t *testing.T) {
	root, _ := sample(t)
	_, err := told(t, root, descs, "gpu.powr.limit", "wait", "wiat", "nowhere_near_anything", "DCGM_LIMT", "[", "GPUIdlWaste", "xid7")
	want := `unknown name "gpu.powr.limit"; did you mean "gpu.power.limit"?
unknown name "wiat"; did you mean "wait"?
unknown name "nowhere_near_anything"
unknown name "DCGM_LIMT"; did you mean "DCGM_LIMIT"?
unknown name "[": syntax error in pattern
unknown name "GPUIdlWaste"; did you mean "GPUIdleWaste"?
unknown name "7": NVIDIA's catalogue of 2025-10-29 has no such XID error`
	if err == nil || err.Error() != want || !errors.Is(err, ErrName) {
		t.Errorf("said %v, want\n%s", err, want)
	}
}

// What is not the asker's fault is no wrong name.
func TestFaults(t *testing.T) {
	broken := func(file, text string) fs.FS {
		root, _ := sample(t)
		delete(root, file)
		if text != "" {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		return root
	}
	for _, c := range []struct {
		root fs.FS
		want string
	}{
		{broken("spec/scopes.yaml", ""), "scopes.yaml"},
		{broken("spec/attributes.yaml", "attributes: {"), "spec/attributes.yaml: yaml:"},
		{broken("spec/metrics/wait.yaml", "metrics: 1"), "spec/metrics/wait.yaml: yaml:"},
		{broken("spec/metrics/wait.yaml", ""), "no metric gpumeter.wait.duration, which is exposed"},
		{broken("spec/metrics/wait.yaml", "metrics: [{name: x, sources: {y: {scale: z}}}]"), "spec/metrics/wait.yaml: yaml:"},
	} {
		if _, err := told(t, c.root, descs); err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrName) {
			t.Errorf("said %v, want %s", err, c.want)
		}
	}
	root, _ := sample(t)
	if err := Write(&bytes.Buffer{}, Sources{root, sampleRules, descs}, nil, "xml"); err == nil || !strings.Contains(err.Error(), `"xml"`) {
		t.Errorf("a format nobody knows: %v", err)
	}
	if err := Write(full{}, Sources{root, sampleRules, descs}, nil, "text"); !errors.Is(err, errFull) {
		t.Errorf("nowhere to write: %v", err)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// The spec in the binary defines every metric the binary exposes, with the labels it exposes.
func TestEveryMetric(t *testing.T) {
	all, err := told(t, gpumeter.Spec(), telemetry.Descs())
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range telemetry.Descs() {
		got := all[i]
		if got.Prometheus != d.Prom || got.Brief == "" {
			t.Errorf("%s: defined as %s: %q", d.Prom, got.Prometheus, got.Brief)
		}
		for _, l := range got.Labels {
			if l.Brief == "" || l.Type == "enum" && len(l.Members) == 0 {
				t.Errorf("%s: label %s is not explained", d.Prom, l.Name)
			}
		}
		for _, row := range d.Rows {
			for _, p := range row.Pairs() {
				at := slices.IndexFunc(got.Labels, func(l label) bool { return l.Name == p.Name })
				if at < 0 || !slices.ContainsFunc(got.Labels[at].Members, func(m member) bool { return m.ID == p.Value }) {
					t.Errorf("%s: %s=%q is not explained", d.Prom, p.Name, p.Value)
				}
			}
		}
		x := index{metrics: all}
		found, err := x.find([]string{d.Name})
		if err != nil || len(found.metrics) == 0 {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
	files, err := fs.Glob(gpumeter.Spec(), "spec/metrics/*.yaml")
	if err != nil || len(files) == 0 {
		t.Errorf("the binary has %d groups: %v", len(files), err)
	}
	for _, f := range files {
		onDisk, err := os.ReadFile(path.Join("../..", f))
		inside, _ := fs.ReadFile(gpumeter.Spec(), f)
		if err != nil || !bytes.Equal(onDisk, inside) {
			t.Errorf("%s: not as on disk: %v", f, err)
		}
	}
}
