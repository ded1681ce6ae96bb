package schema

import (
	"strings"
	"testing"
)

const health = "data/health.yaml"

// judged is the tiny spec with a table of health.
func judged() map[string]string {
	texts := tiny()
	texts[health] = `terms:
  - term: hot
    weight: 0.2
    window: 5m
    why: It is slow.
    from:
      - {metric: gpu.heat.time, values: [chip], least: 10}
  - {term: cold, weight: 1, why: It froze., from: [{metric: gpu.frozen}]}
`
	return texts
}

func TestHealth(t *testing.T) {
	spec, err := Load(files(judged()))
	if err != nil {
		t.Fatal(err)
	}
	h := spec.Health
	if len(h.Terms) != 2 || h.Terms[0].Weight != 0.2 || h.Terms[0].From[0].Least != 10 || h.Terms[1].From[0].Metric != "gpu.frozen" {
		t.Errorf("read as %+v", h)
	}
	for want, got := range map[string]Pos{":1": h.Pos, ":2": h.Terms[0].Pos, ":7": h.Terms[0].From[0].Pos, ":8": h.Terms[1].Pos} {
		if got.String() != "spec/"+health+want {
			t.Errorf("position %s, want line %s", got, want)
		}
	}
	if spec, err := Load(files(tiny())); err != nil || spec.Health != nil {
		t.Errorf("without the table: %v, %v", spec, err)
	}
}

func TestHealthFaults(t *testing.T) {
	for _, x := range []struct{ old, new, want string }{
		{"window: 5m", "widnow: 5m", `:4: unknown key "widnow"; did you mean "window"?`},
		{"    weight: 0.2\n", "", `:2: term hot: missing key "weight"`},
		{"weight: 0.2", "weight: heavy", `:3: weight: wants a number, not "heavy"`},
		{"[{metric: gpu.frozen}]", "[]", `:8: from: wants at least one`},
		{"metric: gpu.heat.time, ", "", `:7: reading: missing key "metric"`},
	} {
		texts := judged()
		if !strings.Contains(texts[health], x.old) {
			t.Fatalf("no %q to replace", x.old)
		}
		texts[health] = strings.Replace(texts[health], x.old, x.new, 1)
		expect(t, texts, x.new, "spec/"+health+x.want)
	}
}
