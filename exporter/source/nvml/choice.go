package nvml

import (
	"slices"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// choice is what is read: the rest costs no call.
type choice struct {
	groups map[string]bool // in which something is on that needs a call or an event
	fields []field
}

// choose keeps what is on.
func choose(on func(*metric.Desc) bool) choice {
	c := choice{groups: map[string]bool{}}
	names := map[string]bool{}
	for _, f := range telemetry.DeviceFamilies {
		if slices.Contains(f.Desc.Sources, "nvml") && on(f.Desc) {
			c.groups[f.Desc.Group] = true
			names[f.Desc.Name] = true
		}
	}
	for _, f := range fields {
		if names[f.metric] {
			c.fields = append(c.fields, f)
		}
	}
	return c
}
