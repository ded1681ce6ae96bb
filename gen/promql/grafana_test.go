package promql

import (
	"testing"

	"github.com/prometheus/prometheus/model/labels"
)

// Grafana's ranges come through, and labels that are selected by already stay as they are.
func TestPanel(t *testing.T) {
	for text, want := range map[string]string{
		"rate(a[$__rate_interval])":         `rate(a{job="x"}[$__rate_interval])`,
		"sum_over_time(a:b:c[$__range:5m])": `sum_over_time(a:b:c{job="x"}[$__range:5m])`,
		`a{job="y"} offset 5m`:              `a{job="y"} offset 5m`,
	} {
		e, err := ParsePanel(text)
		if err != nil {
			t.Fatal(err)
		}
		e, err = e.Match(func(string) []*labels.Matcher {
			return []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "job", "x")}
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Panel(); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	if _, err := ParsePanel("rate(a[$__interval])"); err == nil {
		t.Error("$__interval is taken; a rate over it is often of one sample")
	}
}

// The unit of an expression follows from those of its metrics.
func TestUnit(t *testing.T) {
	units := map[string]string{"watts": "W", "joules": "J", "seconds": "s", "latency_bucket": "s", "ratio": "1", "tokens": "{token}", "bytes": "By"}
	for text, want := range map[string]string{
		"sum by (a) (watts)":                "W",
		"topk(3, max_over_time(watts[5m]))": "W",
		"rate(joules[5m])":                  "W",
		"increase(joules[5m])":              "J",
		"sum(rate(seconds[5m]))":            "1",
		"rate(tokens[5m])":                  "{token}/s",
		"watts > 5":                         "W",
		"watts and on (a) bytes":            "W",
		"watts / watts":                     "1",
		"watts - watts":                     "W",
		"(avg_over_time(bytes[1h:5m]))":     "By",
		"histogram_quantile(0.9, sum by (le) (rate(latency_bucket[5m])))": "s",
		"watts * 2":                  "?",
		"watts / bytes":              "?",
		"watts + bytes":              "?",
		"count(watts)":               "?",
		"watts > bool 5":             "?",
		"count_over_time(watts[5m])": "?",
		"sum_over_time(watts[5m])":   "?",
		"timestamp(watts)":           "?",
		"time()":                     "?",
		"other":                      "?",
	} {
		e, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := e.Unit(func(metric string) (string, bool) { u, ok := units[metric]; return u, ok })
		if !ok {
			got = "?"
		}
		if got != want {
			t.Errorf("%s is in %s, want %s", text, got, want)
		}
	}
}
