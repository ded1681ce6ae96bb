package kubernetes

import (
	"strings"
	"testing"

	"github.com/prometheus/otlptranslator"
)

func TestShown(t *testing.T) {
	long := strings.Repeat("x", longestNote)
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		want                string // as the text format writes it
		broken              uint64
	}{
		"nothing":                   {nil, nil, "", 0},
		"names of Kubernetes":       {map[string]string{"app.kubernetes.io/name": "web", "team": "a"}, nil, `k8s_pod_label_app_kubernetes_io_name="web",k8s_pod_label_team="a"`, 0},
		"both":                      {map[string]string{"a": "1"}, map[string]string{"a": "2"}, `k8s_pod_annotation_a="2",k8s_pod_label_a="1"`, 0},
		"letters keep their case":   {map[string]string{"Team": "1", "team": "2"}, nil, `k8s_pod_label_Team="1",k8s_pod_label_team="2"`, 0},
		"underscores stay":          {map[string]string{"a__b": "1"}, nil, `k8s_pod_label_a__b="1"`, 0},
		"of two names one":          {map[string]string{"a.b": "dot", "a/b": "slash", "a-b": "dash", "a_b": "low"}, nil, `k8s_pod_label_a_b="dash"`, 3},
		"an empty one is none":      {map[string]string{"a": ""}, nil, "", 0},
		"lines and quotes":          {nil, map[string]string{"a": "1\n\"2\"\\"}, `k8s_pod_annotation_a="1\n\"2\"\\"`, 0},
		"no UTF-8":                  {map[string]string{"a": "\xff"}, map[string]string{"a": "x\xff"}, "", 2},
		"as long as it may be":      {nil, map[string]string{"a": long}, `k8s_pod_annotation_a="` + long + `"`, 0},
		"10 kB":                     {map[string]string{"a": strings.Repeat("x", 10_000)}, map[string]string{"a": strings.Repeat("x", 10_000)}, "", 2},
		"a name with line or brace": {map[string]string{"a\n} 1": "x"}, map[string]string{"a\"": "x"}, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			d := &reader{labels: allowed{"*"}, annotations: allowed{"*"}, counts: &counts{}}
			p, err := d.pod(&record{Namespace: "ml", Name: "p", UID: "u", Labels: c.labels, Annotations: c.annotations})
			if err != nil {
				t.Fatal(err)
			}
			if got, broken := p.Shown.Text(), d.counts.rejected.Load(); got != c.want || broken != c.broken {
				t.Errorf("got  %.200s, %d left out\nwant %.200s, %d", got, broken, c.want, c.broken)
			}
		})
	}
}

// The names are those that Prometheus' OTLP receiver makes of OpenTelemetry's.
func FuzzUnderscored(f *testing.F) {
	for _, s := range []string{"app.kubernetes.io/name", "a__b", "A-b_C.d/e", "_", "9"} {
		f.Add(s)
	}
	namer := otlptranslator.LabelNamer{PreserveMultipleUnderscores: true} // as Prometheus does unless told otherwise
	f.Fuzz(func(t *testing.T, name string) {
		want, err := namer.Build("k8s.pod.label." + name)
		if got := labelPrefix + underscored(name); err != nil || got != want {
			t.Errorf("%q: got %s, want %s, %v", name, got, want, err)
		}
	})
}
