package sim

import "github.com/gpumeter/gpumeter/exporter/telemetry"

func (d *device) power(out *telemetry.Power) {
	out.Draw.Set(float64(d.physics.now.power) * milli)
	out.Energy.Set(d.physics.joules())
	for i, watts := range d.board.limits {
		tell(&out.Limit[i], watts != 0, float64(watts))
	}
}
