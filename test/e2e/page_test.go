package e2e

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"go.yaml.in/yaml/v3"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

const openMetrics = "application/openmetrics-text;version=1.0.0"

// notOnThePage are the metrics that neither a simulated node shows nor a driver that can do
// everything, and why.
var notOnThePage = map[string]string{
	"gpumeter_read_faults_total":          "appears with the first fault; these devices never fail",
	"gpu_xid_errors_total":                "a code appears when it is first seen, which takes a simulated node hours",
	"gpu_xid_last_seen_timestamp_seconds": "the same",
}

// Every metric of the spec is on the page of a simulated node or of a driver that can do everything,
// under the name Prometheus' own translation gives it, and nothing else of ours is.
func TestEveryMetricIsServed(t *testing.T) {
	library, config := fakeDriver(t, fakenvml.Driver("610"))
	fakenvml.Configure(t, config, "gpus 1", "board everything", fmt.Sprintf("process 0 %d 1073741824 30", os.Getpid()), "process 0 99999999 4096",
		"set 0 enc_sessions 2", "set 0 enc_fps 60", "set 0 fbc_sessions 1", "set 0 fbc_fps 30")
	families := map[string]*dto.MetricFamily{}
	pods := t.TempDir() // one pod, whose device is not here; without the checkpoint, which is a fault
	for name, text := range map[string]string{
		"list.json":   `{"podResources": [{"name": "a", "namespace": "b", "containers": [{"name": "c", "devices": [{"resourceName": "nvidia.com/gpu", "deviceIds": ["7"]}]}]}]}`,
		"offers.json": `{}`,
	} {
		if err := os.WriteFile(filepath.Join(pods, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kubelet, stop, err := startKubelet(t, kubelet{dir: pods, asked: new(asked)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	here := []string{"--nvml.library", library, "--kubernetes.kubelet-dir", kubelet, "--kubernetes.node", "node-1", "--state.directory", t.TempDir()}
	for _, args := range [][]string{{"--simulate", "mixed"}, here} {
		e := serve(t, []string{"FAKENVML_CONFIG=" + config}, append(args, "--metrics.include", "*")...)
		e.get(t, "/metrics")
		time.Sleep(5500 * time.Millisecond) // the second read has timed the first, and the sampler has had a window
		maps.Copy(families, parse(t, e.get(t, "/metrics", "Accept", "text/plain")))
	}
	want := map[string]bool{}
	for _, m := range specMetrics(t) {
		if m.unread {
			continue
		}
		want[m.prom] = true
		_, excused := notOnThePage[m.prom]
		switch served := families[m.prom] != nil; {
		case !served && !excused:
			t.Errorf("%s is in the spec and not on the page", m.prom)
		case served && excused:
			t.Errorf("%s is on the page; its excuse is out of date", m.prom)
		}
	}
	for name, f := range families {
		if !want[name] && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("%s is on the page and not in the spec", name)
		}
		for _, m := range f.Metric {
			if n := len(m.Label); n > 14 {
				t.Errorf("%s: a series with %d labels; at most 14", name, n)
			}
		}
	}
}

// What one H100 costs Prometheus by default, with its links and without.
func TestSeriesOfOneDevice(t *testing.T) {
	e := serve(t, nil, "--simulate", "h100x1")
	page := e.get(t, "/metrics", "Accept", "text/plain")
	all := len(regexp.MustCompile(`(?m)^gpu_`).FindAllString(page, -1))
	links := len(regexp.MustCompile(`(?m)^gpu_link_`).FindAllString(page, -1))
	if all < 250 || all > 450 || all-links > 250 {
		t.Errorf("%d series, %d of them of links", all, links)
	}
}

// specMetric is an entry of the spec.
type specMetric struct {
	prom   string
	unread bool // specified, and read by no source yet
}

// specMetrics reads the names from the YAML and translates them.
func specMetrics(t *testing.T) []specMetric {
	t.Helper()
	files, err := filepath.Glob("../../spec/metrics/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no spec: %v", err)
	}
	prefixes := scopePrefixes(t)
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	types := map[string]otlptranslator.MetricType{
		"gauge": otlptranslator.MetricTypeGauge, "counter": otlptranslator.MetricTypeMonotonicCounter,
		"updowncounter": otlptranslator.MetricTypeNonMonotonicCounter, "histogram": otlptranslator.MetricTypeHistogram,
	}
	var metrics []specMetric
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var group struct {
			Scopes  []string
			Metrics []struct {
				Name, Unit, Instrument string
				Sources                map[string]any
			}
		}
		if err := yaml.Unmarshal(raw, &group); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, m := range group.Metrics {
			for _, scope := range group.Scopes { // a metric of several is written under the prefix of the first
				own := m.Name
				if len(group.Scopes) > 1 {
					own = prefixes[scope] + strings.TrimPrefix(m.Name, prefixes[group.Scopes[0]])
				}
				name, err := namer.Build(otlptranslator.Metric{Name: own, Unit: m.Unit, Type: types[m.Instrument]})
				if err != nil {
					t.Fatal(err)
				}
				metrics = append(metrics, specMetric{prom: name, unread: len(m.Sources) == 0})
			}
		}
	}
	return metrics
}

// scopePrefixes are the first words of each scope's metrics.
func scopePrefixes(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("../../spec/scopes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Scopes []struct {
			Name     string
			Prefixes []string
		}
	}
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, s := range doc.Scopes {
		out[s.Name] = s.Prefixes[0]
	}
	return out
}

func parse(t testing.TB, page string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatalf("the page does not parse: %v", err)
	}
	return families
}

// Prometheus' own parser takes the OpenMetrics page to its end mark, and sees the same number of
// series as in the text format.
func TestOpenMetricsParses(t *testing.T) {
	e := serve(t, nil, "--simulate", "mixed", "--max-age", "1h")
	page := e.get(t, "/metrics", "Accept", openMetrics)
	if !strings.HasSuffix(page, "\n# EOF\n") {
		t.Errorf("the page ends with %q", page[len(page)-20:])
	}
	parser := textparse.NewOpenMetricsParser([]byte(page), labels.NewSymbolTable())
	series, units := 0, 0
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("after %d series: %v", series, err)
		}
		switch entry {
		case textparse.EntrySeries:
			series++
		case textparse.EntryUnit:
			units++
		}
	}
	text := e.get(t, "/metrics", "Accept", "text/plain")
	if want := len(regexp.MustCompile(`(?m)^[^#]`).FindAllString(text, -1)); series != want || units == 0 {
		t.Errorf("%d series and %d units; the text format has %d series", series, units, want)
	}
}

// promtool, as its users run it, finds nothing to complain of.
func TestPromtoolCheckMetrics(t *testing.T) {
	promtool := os.Getenv("GPUMETER_PROMTOOL")
	if promtool == "" {
		t.Skip("GPUMETER_PROMTOOL does not name a promtool; `make test` sets it")
	}
	e := serve(t, nil, "--simulate", "mixed", "--metrics.include", "system")
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(e.get(t, "/metrics", "Accept", "text/plain"))
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// Protobuf and text hold the same families and as many series each.
func TestFormatsAgree(t *testing.T) {
	e := serve(t, nil, "--simulate", "h100x1", "--max-age", "1h")
	text := parse(t, e.get(t, "/metrics", "Accept", "text/plain"))
	proto := e.get(t, "/metrics", "Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	decoder := expfmt.NewDecoder(strings.NewReader(proto), expfmt.NewFormat(expfmt.TypeProtoDelim))
	n := 0
	for {
		var f dto.MetricFamily
		err := decoder.Decode(&f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
		if other := text[f.GetName()]; other == nil || len(other.Metric) != len(f.Metric) {
			t.Errorf("%s: protobuf and text differ", f.GetName())
		}
	}
	if n != len(text) {
		t.Errorf("%d families in protobuf, %d in text", n, len(text))
	}
}
