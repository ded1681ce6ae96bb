package nvml

import (
	"slices"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// choice is what is read: the rest costs no call.
type choice struct {
	metrics map[string]bool // by OpenTelemetry name
	groups  map[string]bool // in which something is on
	device  []field[telemetry.Device]
	link    []field[telemetry.Link]
}

// choose keeps what is on.
func choose(on func(*metric.Desc) bool) *choice {
	c := &choice{metrics: map[string]bool{}, groups: map[string]bool{}}
	for _, d := range telemetry.Descs() {
		if slices.Contains(d.Sources, "nvml") && on(d) {
			c.metrics[d.Name] = true
			c.groups[d.Group] = true
		}
	}
	c.device = chosen(deviceFields, c.metrics)
	c.link = chosen(linkFields, c.metrics)
	return c
}

func chosen[T any](table []field[T], names map[string]bool) (out []field[T]) {
	for _, f := range table {
		if names[f.metric] {
			out = append(out, f)
		}
	}
	return out
}

// asksMIG says whether anything that is on goes by the MIG mode.
func (c *choice) asksMIG() bool { return c.any("mode", "utilization", "repair") || c.listsMIG() }

// listsMIG says whether anything that is on is told of MIG instances.
func (c *choice) listsMIG() bool { return c.any("profiling", "partitions", "processes") }

func (c *choice) any(groups ...string) bool {
	return slices.ContainsFunc(groups, func(g string) bool { return c.groups[g] })
}
