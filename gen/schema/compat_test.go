package schema

import (
	"strings"
	"testing"
)

const compat = "compat/dcgm.yaml"

// answered is the tiny spec with answers to another exporter.
func answered() map[string]string {
	texts := tiny()
	texts[compat] = `system: dcgm
title: dcgm-exporter
brief: Other names.
names: prometheus
dialects:
  - {name: old, brief: Before.}
labels:
  - there: [{name: gpu}]
    attribute: gpu.kind
sections:
  - name: Default
    brief: What it has.
    answers:
      - there: [{name: X, scale: 1000}]
        metric: gpu.power.draw
        attributes: {gpu.kind: min}
    rest:
      none: It is not ours.
`
	return texts
}

func TestCompat(t *testing.T) {
	spec, err := Load(files(answered()))
	if err != nil {
		t.Fatal(err)
	}
	c := spec.Compats[0]
	a := c.Sections[0].Answers[0]
	for want, got := range map[string]Pos{
		":1":  c.Pos,
		":6":  c.Dialects[0].Pos,
		":8":  c.Labels[0].Pos,
		":11": c.Sections[0].Pos,
		":14": a.There[0].Pos,
		":16": a.Attributes[0].Pos,
		":18": c.Sections[0].Rest.Pos,
	} {
		if got.String() != "spec/"+compat+want {
			t.Errorf("position %s, want line %s", got, want)
		}
	}
	if a.There[0].Scale != 1000 || a.Metric != "gpu.power.draw" {
		t.Errorf("read as %+v", a)
	}
	if spec, err := Load(files(tiny())); err != nil || spec.Compats != nil {
		t.Errorf("without the folder: %v, %v", spec, err)
	}
}

func TestCompatFaults(t *testing.T) {
	for _, x := range []struct{ old, new, want string }{
		{"metric: gpu.power.draw", "metrik: gpu.power.draw", `:15: unknown key "metrik"; did you mean "metric"?`},
		{"scale: 1000", "scale: thousand", `:14: scale: wants a number, not "thousand"`},
		{"{name: X, scale", "{nam: X, scale", `:14: unknown key "nam"; did you mean "name"?` + "\nspec/" + compat + `:14: foreign X: missing key "name"`},
		{"none: It is not ours.", "nothing: It is not ours.", `:18: unknown key "nothing"`},
		{"names: prometheus", "names: promtheus", `:4: names: "promtheus" is none of otel, prometheus; did you mean "prometheus"?`},
		{"        metric: gpu.power.draw", "        as: rat\n        metric: gpu.power.draw", `:15: as: "rat" is none of rate, mean, p50, p95, p99, differs; did you mean "rate"?`},
		{"title: dcgm-exporter\n", "", `:1: compat dcgm: missing key "title"`},
		{"system: dcgm", "system: amd", `:1: system "amd" stands in dcgm.yaml; they must agree`},
	} {
		texts := answered()
		if !strings.Contains(texts[compat], x.old) {
			t.Fatalf("no %q to replace", x.old)
		}
		texts[compat] = strings.Replace(texts[compat], x.old, x.new, 1)
		expect(t, texts, x.new, "spec/"+compat+x.want)
	}
	texts := answered()
	texts["compat/notes.md"] = "x"
	expect(t, texts, "another file", "spec/compat/notes.md: only files named <system>.yaml belong here")
}
