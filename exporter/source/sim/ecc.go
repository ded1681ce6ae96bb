package sim

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func (d *device) ecc(out *telemetry.ECC) {
	b, errors, before := d.board, d.faults.memoryErrors(d.physics.tick), &d.faults.before
	locations := b.ecc && b.vendor == nvidia
	for i, by := range errors {
		sum, life := int64(0), int64(0)
		for where := range out.LocationErrors[i] {
			out.LocationErrors[i][where].Fail(metric.Unsupported)
			out.LocationLifetimeErrors[i][where].Fail(metric.Unsupported)
		}
		for where, n := range by {
			sum += n
			life += n + before[i][where]
			tell(&out.LocationErrors[i][where], locations, float64(n))
			tell(&out.LocationLifetimeErrors[i][where], locations, float64(n+before[i][where]))
		}
		tell(&out.Errors[i], b.ecc, float64(sum))
		tell(&out.LifetimeErrors[i], b.eccLife, float64(life))
	}
	for i := range out.Enabled {
		tell(&out.Enabled[i], b.eccMode, 1)
	}
	d.sram(errors[telemetry.ECCErrorTypeUncorrected][telemetry.ECCLocationSram], out)
}

// sram tells of the uncorrected errors of memory on the chip: the multiprocessors' are found by
// parity, those of the cache by a code. A GeForce tells that there are none.
func (d *device) sram(n int64, out *telemetry.ECC) {
	ours, unit := d.board.vendor == nvidia, d.faults.weakUnit
	life := n + d.faults.before[telemetry.ECCErrorTypeUncorrected][telemetry.ECCLocationSram]
	check := telemetry.ECCSramCheckSecded
	if unit == telemetry.ECCSramUnitSM {
		check = telemetry.ECCSramCheckParity
	}
	for i := range out.SramUncorrectedErrors {
		found := one(telemetry.ECCSramCheck(i) == check)
		tell(&out.SramUncorrectedErrors[i], ours, found*float64(n))
		tell(&out.SramUncorrectedLifetimeErrors[i], ours, found*float64(life))
	}
	for i := range out.SramUnitLifetimeErrors {
		tell(&out.SramUnitLifetimeErrors[i], ours, one(telemetry.ECCSramUnit(i) == unit)*float64(life))
	}
	tell(&out.SramThresholdExceeded, ours, 0)
}
