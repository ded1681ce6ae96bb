package schema

import (
	"strings"
	"testing"
)

const board = "dashboards/power.yaml"

// shown is the tiny spec with a dashboard.
func shown() map[string]string {
	texts := tiny()
	texts["vocabulary.yaml"] = `variables:
  - {name: thing, title: Thing, label: gpu_uuid, from: gpu_power, brief: Things.}
annotations:
  - {name: event, title: Events, expr: gpu_events > 0, text: One, color: red, brief: Events.}
labels: {gpu_uuid: Thing}
units:
  ratio: {id: percentunit, of: ["1"]}
`
	texts[board] = `dashboard: power
uid: demo-power
title: Power
brief: What draws most.
variables: [thing]
rows:
  - title: All
    panels:
      - title: Draw
        brief: What all draw.
        type: stat
        queries:
          - expr: sum(gpu_power)
`
	return texts
}

func TestDashboards(t *testing.T) {
	spec, err := Load(files(shown()))
	if err != nil {
		t.Fatal(err)
	}
	d := spec.Dashboards[0]
	if p := d.Rows[0].Panels[0]; d.UID != "demo-power" || p.Type != "stat" || p.Queries[0].Expr != "sum(gpu_power)" || p.Pos.String() != "spec/"+board+":9" {
		t.Errorf("read as %+v", d)
	}
	if v := spec.Vocabulary; v.Variables[0].Label != "gpu_uuid" || v.Units[0].Value.ID != "percentunit" {
		t.Errorf("read as %+v", v)
	}
	if spec, err := Load(files(tiny())); err != nil || spec.Dashboards != nil {
		t.Errorf("without dashboards: %v, %v", spec, err)
	}
}

func TestDashboardFaults(t *testing.T) {
	for _, x := range []struct{ old, new, want string }{
		{"        brief: What all draw.\n", "", `:9: panel Draw: missing key "brief"`},
		{"uid: demo-power\n", "", `:1: dashboard power: missing key "uid"`},
		{"type: stat", "type: number", `:11: type: "number" is none of stat, gauge, timeseries, bargauge, table, heatmap, statetimeline, piechart`},
		{"dashboard: power", "dashboard: might", `:1: dashboard "might" stands in power.yaml; they must agree`},
		{"title: Power", "titel: Power", `:3: unknown key "titel"; did you mean "title"?`},
	} {
		texts := shown()
		if !strings.Contains(texts[board], x.old) {
			t.Fatalf("no %q to replace", x.old)
		}
		texts[board] = strings.Replace(texts[board], x.old, x.new, 1)
		if got := load(texts); !strings.Contains(got, "spec/"+board+x.want) {
			t.Errorf("%q: %s, want %s", x.new, got, x.want)
		}
	}
}

func load(texts map[string]string) string {
	_, err := Load(files(texts))
	if err == nil {
		return ""
	}
	return err.Error()
}
