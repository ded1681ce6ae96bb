package promql

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
)

func parse(t *testing.T, text string) *Expr {
	t.Helper()
	e, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestUses(t *testing.T) {
	e := parse(t, `sum by (a) (rate(x_total{b="1"}[5m])) / count(y) > config:most and on (a) (max_over_time((z)[5m:1m]) == 1)`)
	want := []Use{{"x_total", []string{"b"}, true, "rate"}, {"y", nil, false, ""}, {"z", nil, false, ""}}
	if got := e.Uses(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestWith(t *testing.T) {
	cluster := labels.MustNewMatcher(labels.MatchEqual, "job", "gpumeter")
	settings := map[string]string{"most": "85", "actions": "reset|reboot", "least": "%(least)s"}
	values := func(name string) (string, bool) { v, ok := settings[name]; return v, ok }
	for _, c := range []struct{ expr, want string }{
		{`x > config:most`, `x{job="gpumeter"} > 85`},
		{`rate(x_total{a=~"config:actions"}[5m]) > 0`, `rate(x_total{a=~"reset|reboot",job="gpumeter"}[5m]) > 0`},
		{`max by (a) (x) < config:least * 2`, `max by (a) (x{job="gpumeter"}) < %(least)s * 2`},
		{`(x > config:most) or absent(y)`, `(x{job="gpumeter"} > 85) or absent(y{job="gpumeter"})`},
		{`count_over_time((x > config:most)[5m:30s])`, `count_over_time((x{job="gpumeter"} > 85)[5m:30s])`},
	} {
		e := parse(t, c.expr)
		got, err := e.With(values, cluster)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.expr, got, c.want)
		}
		if e.String() == got.String() {
			t.Errorf("%s: the expression itself was changed", c.expr)
		}
	}
	if _, err := parse(t, "x > config:mots").With(values); err == nil || err.Error() != "no setting mots" {
		t.Errorf("a setting that is not there: %v", err)
	}
	if got := parse(t, `x{a="config:b"} > config:c + config:c`).Settings(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("settings %v", got)
	}
}

func TestRename(t *testing.T) {
	const text = `sum by (cluster, a) (x{cluster="1"}) * on (cluster) group_left (b) y and on (cluster) z`
	got, err := parse(t, text).Rename("cluster", "zone")
	if want := strings.ReplaceAll(text, "cluster", "zone"); err != nil || got.String() != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestHeld(t *testing.T) {
	e := parse(t, "x > 1").Held("5m30s", "30s", "11")
	if want := `(x > 1) and (count_over_time((x > 1)[5m30s:30s]) >= 11)`; e.String() != want {
		t.Errorf("got %s, want %s", e, want)
	}
	if _, err := Parse(e.And([]string{"a"}, parse(t, "y")).String()); err != nil {
		t.Error(err)
	}
	j, err := Joined("r:x:y", "o{p=\"\"}", []string{"a", "b"}, []string{"c"})
	if want := `r:x:y * on (a, b) group_left (c) (topk by (a, b) (1, timestamp(o{p=""})) > bool 0) or on (a, b) r:x:y`; err != nil || j.String() != want {
		t.Errorf("got %s, %v; want %s", j, err, want)
	}
}

func TestHeldOver(t *testing.T) {
	for text, want := range map[string]string{
		"x > config:limit": `a:x:value > config:limit unless min_over_time(a:x:value[5m30s:30s]) <= config:limit and on (m) (count_over_time((max by (m) (a:x:value) > config:limit)[5m30s:30s]) >= 11)`,
		"x / y <= 0.5":     `a:x:value <= 0.5 unless max_over_time(a:x:value[5m30s:30s]) > 0.5 and on (m) (count_over_time((min by (m) (a:x:value) <= 0.5)[5m30s:30s]) >= 11)`,
	} {
		_, sign, limit, ok := parse(t, text).Compared()
		if !ok {
			t.Fatalf("%s is no comparison", text)
		}
		got, err := HeldOver("a:x:value", sign, limit, []string{"m"}, "5m30s", "30s", "11")
		if err != nil || got.String() != want {
			t.Errorf("%s held: got %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "x > y", "x == 1", "x > bool 1", "1 < x", "x > 1 and y"} {
		if _, _, _, ok := parse(t, text).Compared(); ok {
			t.Errorf("%s compares series with a number", text)
		}
	}
}

func TestLabels(t *testing.T) {
	known := func(metric string) ([]string, bool) {
		names, ok := map[string][]string{"x": {"a", "b", "instance"}, "y": {"a", "c"}, "h_bucket": {"a", "le"}}[metric]
		return names, ok
	}
	for _, c := range []struct{ expr, labels, faults string }{
		{`x`, "a b instance", ""},
		{`x{c="1"}`, "a b instance", "x has no label c"},
		{`z`, "", "no metric or recording rule z"},
		{`sum by (a) (x)`, "a", ""},
		{`sum by (a, d) (x)`, "a d", "by d: no series there has that label"},
		{`sum without (b) (x)`, "a instance", ""},
		{`topk by (a) (3, x)`, "a b instance", ""},
		{`x > config:most`, "a b instance", ""},
		{`2 * x`, "a b instance", ""},
		{`x * on (a) y`, "a", ""},
		{`x * on (b) y`, "b", "on b: no series there has that label"},
		{`x * on (a) group_left (c) y`, "a b c instance", ""},
		{`x * on (a) group_left (d) y`, "a b d instance", "group d: no series there has that label"},
		{`y * on (a) group_right (c) x`, "a b c instance", ""},
		{`x and on (a) y`, "a b instance", ""},
		{`sum by (a) (x) or y`, "a c", ""},
		{`histogram_quantile(0.9, sum by (a, le) (rate(h_bucket[5m])))`, "a", ""},
		{`histogram_quantile(0.9, sum by (a) (rate(h_bucket[5m])))`, "a", "histogram_quantile by le: no series there has that label"},
		{`label_replace(x, "d", "$1", "a", "(.*)")`, "a b d instance", ""},
		{`sum(x)`, "", ""},
		{`vector(1)`, "", ""},
		{`-x`, "a b instance", ""},
		{`max_over_time((x)[5m:1m])`, "a b instance", ""},
		{`count_values by (a) ("v", x)`, "a v", ""},
	} {
		got, faults := parse(t, c.expr).Labels(known)
		var texts []string
		for _, f := range faults {
			texts = append(texts, f.Error())
		}
		if l := strings.Join(got.Sorted(), " "); l != c.labels || strings.Join(texts, "; ") != c.faults {
			t.Errorf("%s: labels %q, %q; want %q, %q", c.expr, l, texts, c.labels, c.faults)
		}
	}
}
