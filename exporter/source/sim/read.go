package sim

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

const (
	mega    = 1e6
	milli   = 1e-3
	percent = 1e-2
)

// tell records a number, or that the board does not have it.
func tell(v *metric.Value, has bool, n float64) {
	if has {
		v.Set(n)
	} else {
		v.Fail(metric.Unsupported)
	}
}

// one is 1 for what holds.
func one(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// xid tells the codes seen so far, in a slice of its own: what is read is kept by others.
func (d *device) xid(out *telemetry.XID) {
	var seen []metric.Keyed
	for i, labels := range d.faults.labels {
		n := d.faults.count(i, d.physics.tick)
		if labels == nil || n == 0 {
			continue
		}
		if seen == nil {
			seen = make([]metric.Keyed, 0, len(faultSorts))
		}
		k := metric.Keyed{Labels: labels}
		k.Value.Set(float64(n))
		seen = append(seen, k)
	}
	out.Errors = seen
}
