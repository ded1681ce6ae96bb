package sim

import "github.com/gpumeter/gpumeter/exporter/telemetry"

func (d *device) ecc(out *telemetry.ECC) {
	for i, n := range d.faults.memoryErrors(d.physics.tick) {
		tell(&out.Errors[i], d.board.ecc, float64(n))
		tell(&out.LifetimeErrors[i], d.board.eccLife, float64(d.faults.before[i]+n))
	}
	for i := range out.Enabled {
		tell(&out.Enabled[i], d.board.eccMode, 1)
	}
}
