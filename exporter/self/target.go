package self

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Target is the machine the exporter runs on, as its cluster knows it. What is not known is empty.
type Target struct {
	Node         string // its name
	Region, Zone string
	Type         string // the cloud's name of the sort of machine
}

// target keeps the series of a Target while that stays as it is.
type target struct {
	of     Target
	series []metric.Keyed
}

// tell returns the series; nil while nothing is known.
func (x *target) tell(t Target) []metric.Keyed {
	if t != x.of {
		x.of = t
		x.series = []metric.Keyed{keyed(telemetry.TargetInfoAttributes{
			K8sNodeName: t.Node, CloudRegion: t.Region, CloudAvailabilityZone: t.Zone, HostType: t.Type,
		}.Labels(), 1)}
		if t == (Target{}) {
			x.series = nil
		}
	}
	return x.series
}
