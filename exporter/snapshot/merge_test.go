package snapshot

import (
	"testing"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// A gauge comes from whoever has it; a counter never moves to another source's count and back.
func TestMerge(t *testing.T) {
	number := func(n float64) (v metric.Value) { v.Set(n); return v }
	failed := func(why *metric.Reason) (v metric.Value) { v.Fail(why); return v }
	xids := []metric.Keyed{{Labels: telemetry.XIDErrorsAttributes{XID: 79}.Labels(), Value: number(3)}}
	read := func(v metric.Value, list []metric.Keyed) *telemetry.Device {
		d := new(telemetry.Device)
		d.Power.Draw, d.Power.Energy, d.XID.Errors = v, v, list
		return d
	}
	other := part{"sim", read(number(7), xids), nil}
	for name, c := range map[string]struct {
		first        part // of nvml, which the spec lists first
		draw, energy metric.Value
		xids         int
	}{
		"has it":          {part{"nvml", read(number(1), []metric.Keyed{}), nil}, number(1), number(1), 0},
		"never has it":    {part{"nvml", read(failed(metric.Unsupported), nil), nil}, number(7), number(7), 1},
		"may not read it": {part{"nvml", read(failed(metric.Denied), nil), nil}, number(7), number(7), 1},
		"failed":          {part{"nvml", read(failed(metric.Failed), xids), nil}, number(7), failed(metric.Failed), 1},
		"late":            {part{"nvml", nil, metric.Late}, number(7), metric.Value{}, 0},
		"lost":            {part{"nvml", read(metric.Value{}, xids), metric.Lost}, number(7), metric.Value{}, 1},
	} {
		for _, parts := range [][]part{{c.first, other}, {other, c.first}} {
			var got telemetry.Device
			merge(&got, parts)
			if got.Power.Draw != c.draw || got.Power.Energy != c.energy || len(got.XID.Errors) != c.xids {
				t.Errorf("%s: draw %v, want %v; energy %v, want %v; %d XIDs, want %d",
					name, got.Power.Draw, c.draw, got.Power.Energy, c.energy, len(got.XID.Errors), c.xids)
			}
		}
	}
}

// Partitions, links and processes are of the first source that has any, and are never mixed.
func TestMergeParts(t *testing.T) {
	link := func(id int64) telemetry.Part[telemetry.Link] {
		return telemetry.Part[telemetry.Link]{Labels: telemetry.LinkAttributes{LinkID: id}.Labels()}
	}
	bare := part{source: "nvml", read: new(telemetry.Device)}
	one := part{source: "dcgm", read: &telemetry.Device{
		Partitions: make([]telemetry.Part[telemetry.Partition], 2),
		Links:      []telemetry.Part[telemetry.Link]{link(7)},
		Processes:  make([]telemetry.Part[telemetry.Process], 3),
	}}
	other := part{source: "sim", read: &telemetry.Device{Links: []telemetry.Part[telemetry.Link]{link(8), link(9)}}}
	var got telemetry.Device
	merge(&got, []part{{source: "lost", why: metric.Lost}, bare, one, other})
	if len(got.Partitions) != 2 || len(got.Processes) != 3 || len(got.Links) != 1 || got.Links[0].Labels.Get("gpu_link_id") != "7" {
		t.Errorf("%d partitions, %d links, %d processes", len(got.Partitions), len(got.Links), len(got.Processes))
	}
}
