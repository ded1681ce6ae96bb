package sim

import "github.com/gpumeter/gpumeter/exporter/telemetry"

// power tells what the board draws, which changes with the tick: the mean of a second and the
// instant are the same here.
func (d *device) power(out *telemetry.Power) {
	draw, ours := float64(d.physics.now.power)*milli, d.board.vendor == nvidia
	out.Draw.Set(draw)
	for i := range out.Instant {
		tell(&out.Instant[i], ours && telemetry.PowerDomain(i) == telemetry.PowerDomainDevice, draw)
	}
	tell(&out.Peak, ours, float64(d.physics.last.peak(d.physics.now.power))*milli)
	out.Energy.Set(d.physics.joules())
	for i, watts := range d.board.limits {
		tell(&out.Limit[i], watts != 0, float64(watts))
	}
}
