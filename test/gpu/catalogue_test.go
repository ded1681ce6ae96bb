package gpu

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// promised is one value that the spec says source nvml reads: a metric, or one member of its
// attribute or one type of link that a numbered field of the driver gives.
type promised struct {
	metric string      // Prometheus name
	with   [][2]string // the labels of the series
	ids    []int       // numbered fields of the driver
}

func (p promised) String() string {
	var pairs []string
	for _, w := range p.with {
		pairs = append(pairs, w[0]+"="+w[1])
	}
	if pairs == nil {
		return p.metric
	}
	return p.metric + "{" + strings.Join(pairs, ",") + "}"
}

// fieldVersions is a numbered field in the spec: a number, or a list by driver and type of link.
type fieldVersions []struct {
	Link string
	ID   int
}

func (f *fieldVersions) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		type plain fieldVersions
		return n.Decode((*plain)(f))
	}
	*f = make(fieldVersions, 1)
	return n.Decode(&(*f)[0].ID)
}

// metricSpec is what the spec says of a metric, as far as it matters here.
type metricSpec struct {
	Name       string
	Attributes []string
	Sources    map[string]struct {
		States []string
		Field  fieldVersions
		Fields map[string]fieldVersions
	}
}

// catalogue returns all that the spec says source nvml reads.
func catalogue(t *testing.T) []promised {
	t.Helper()
	names := prometheusNames(t)
	prefixes := scopePrefixes(t)
	files, err := filepath.Glob(filepath.Join(root(t), "spec", "metrics", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no metrics in the spec: ", err)
	}
	var out []promised
	for _, file := range files {
		var group struct {
			Scopes  []string
			Metrics []metricSpec
		}
		readYAML(t, file, &group)
		for _, m := range group.Metrics {
			if _, read := m.Sources["nvml"]; !read {
				continue
			}
			for _, scope := range group.Scopes {
				otel := prefixes[scope] + strings.TrimPrefix(m.Name, prefixes[group.Scopes[0]])
				name := names[otel]
				if name == "" {
					t.Fatalf("%s: %s is not in the catalogue", file, otel)
				}
				out = append(out, m.promises(name)...)
			}
		}
	}
	return out
}

// promises are the values of one metric, by the labels its numbered fields give.
func (m metricSpec) promises(name string) []promised {
	ref := m.Sources["nvml"]
	var out []promised
	add := func(versions fieldVersions, with ...[2]string) {
		byLink := map[string]int{}
		for _, v := range versions {
			labels := with
			if v.Link != "" {
				labels = append([][2]string{{"gpu_link_type", v.Link}}, with...)
			}
			at, there := byLink[v.Link]
			if !there {
				at = len(out)
				byLink[v.Link] = at
				out = append(out, promised{metric: name, with: labels})
			}
			out[at].ids = append(out[at].ids, v.ID)
		}
	}
	add(ref.Field)
	for member, versions := range ref.Fields {
		add(versions, [2]string{strings.ReplaceAll(m.Attributes[0], ".", "_"), member})
	}
	if out == nil { // a call or an event
		out = append(out, promised{metric: name})
	}
	slices.SortFunc(out, func(a, b promised) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// prometheusNames maps OpenTelemetry names to Prometheus names.
func prometheusNames(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root(t), "spec", "reference", "catalogue.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		if columns := strings.Split(line, "\t"); len(columns) > 3 {
			out[columns[3]] = columns[0]
		}
	}
	return out
}

// scopePrefixes maps a scope to the prefix of its metrics.
func scopePrefixes(t *testing.T) map[string]string {
	t.Helper()
	var file struct {
		Scopes []struct {
			Name     string
			Prefixes []string
		}
	}
	readYAML(t, filepath.Join(root(t), "spec", "scopes.yaml"), &file)
	out := map[string]string{}
	for _, s := range file.Scopes {
		out[s.Name] = s.Prefixes[0]
	}
	return out
}

func readYAML(t *testing.T, file string, to any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(raw, to)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// has reports whether a selector is of the series: of the same metric, with all labels of p. A
// selector of a label or a state is of all series of its metric.
func (p promised) has(text string) bool {
	s := selected(text)
	if s.name != p.metric {
		return false
	}
	for _, w := range p.with {
		if s.label == "" && !slices.Contains(s.with, w) {
			return false
		}
	}
	return true
}

// excused reports whether a key of only is about p: the same metric, and no label that p has not.
func (p promised) excused(key string) bool {
	s := selected(key)
	if s.name != p.metric {
		return false
	}
	for _, w := range s.with {
		if !slices.Contains(p.with, w) {
			return false
		}
	}
	return true
}

// uncompared returns what is wrong with the rows and the reasons: a value of the spec that has
// neither or both, and a reason for nothing.
func uncompared(all []promised, selectors []string, reasons map[string]string) []string {
	var out []string
	used := map[string]bool{}
	for _, p := range all {
		compared := slices.ContainsFunc(selectors, p.has)
		var why []string
		for key := range reasons {
			if p.excused(key) {
				used[key] = true
				why = append(why, key)
			}
		}
		switch {
		case !compared && why == nil:
			out = append(out, p.String()+": source nvml reads it, and no row compares it with nvidia-smi and no reason says why not")
		case compared && why != nil:
			out = append(out, p.String()+": a row compares it with nvidia-smi, and a reason says why not")
		}
	}
	for key := range reasons {
		if !used[key] {
			out = append(out, key+": a reason why nothing is compared, for what source nvml does not read")
		}
	}
	slices.Sort(out)
	return out
}

// Each value that the spec says source nvml reads has a row that compares it, or a reason why
// nvidia-smi does not have it.
func TestCatalogueIsCompared(t *testing.T) {
	selectors := []string{"gpu_process_memory_usage_bytes"}
	for _, w := range append(rows(), reading{}.partition("", "")...) {
		selectors = append(selectors, w.ours)
	}
	all := catalogue(t)
	if len(all) < 150 {
		t.Errorf("the spec has only %d values of source nvml", len(all))
	}
	for _, offence := range uncompared(all, selectors, only) {
		t.Error(offence)
	}
}

// Rows and reasons that are missing, doubled or out of date are seen.
func TestUncompared(t *testing.T) {
	nvlink := promised{"gpu_link_errors_total", [][2]string{{"gpu_link_type", "nvlink"}, {"gpu_link_error_type", "crc"}}, []int{163}}
	power := promised{metric: "gpu_power_draw_watts"}
	for _, c := range []struct {
		name      string
		all       []promised
		selectors []string
		reasons   map[string]string
		want      string
	}{
		{"a row", []promised{power}, []string{"gpu_power_draw_watts"}, nil, ""},
		{"a row of all labels", []promised{nvlink}, []string{"gpu_link_errors_total{gpu_link_error_type=crc,gpu_link_type=nvlink}"}, nil, ""},
		{"a reason", []promised{nvlink}, nil, map[string]string{"gpu_link_errors_total{gpu_link_type=nvlink}": "elsewhere"}, ""},
		{"neither", []promised{power}, nil, nil, "gpu_power_draw_watts: source nvml reads it, and no row"},
		{"a row of another type of link", []promised{nvlink}, []string{"gpu_link_errors_total{gpu_link_type=pcie,gpu_link_error_type=crc}"}, nil, "no row"},
		{"a reason for another type of link", []promised{nvlink}, nil, map[string]string{"gpu_link_errors_total{gpu_link_type=c2c}": "elsewhere"}, "no row"},
		{"both", []promised{power}, []string{"gpu_power_draw_watts"}, map[string]string{"gpu_power_draw_watts": "elsewhere"}, "a row compares it with nvidia-smi, and a reason"},
		{"a reason for nothing", []promised{power}, []string{"gpu_power_draw_watts"}, map[string]string{"gpu_power_peak_watts": "elsewhere"}, "gpu_power_peak_watts: a reason"},
	} {
		got := strings.Join(uncompared(c.all, c.selectors, c.reasons), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

var fakeField = regexp.MustCompile(`\{(\d+), (\d+), [A-Z_]+, R_`)

// The fake library answers each numbered field of the spec, so that each is read through dlopen.
func TestFakeHasEveryField(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root(t), "test", "fakenvml", "library", "fields.c"))
	if err != nil {
		t.Fatal(err)
	}
	answered := map[int]bool{}
	for _, m := range fakeField.FindAllStringSubmatch(string(raw), -1) {
		first, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		last, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		for id := first; id <= last; id++ {
			answered[id] = true
		}
	}
	n := 0
	for _, p := range catalogue(t) {
		for _, id := range p.ids {
			n++
			if !answered[id] {
				t.Errorf("%s: the fake library does not answer field %d", p, id)
			}
		}
	}
	if n < 100 {
		t.Errorf("the spec has only %d numbered fields", n)
	}
}
