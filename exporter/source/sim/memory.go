package sim

import "github.com/gpumeter/gpumeter/exporter/telemetry"

// memory is taken while a job loads, and kept until it ends.
func (d *device) memory(out *telemetry.Memory) {
	const page = 2 << 20
	b, used := d.board, int64(0)
	if j := d.physics.now.job; j != nil {
		whole := (b.memory - b.reserved) / 1000 * d.physics.plan.footprint
		used = whole / j.ramp * min(j.ramp, d.physics.tick-j.from) / page * page
	}
	out.Limit.Set(float64(b.memory))
	out.Usage.Set(float64(used))
	out.Free.Set(float64(b.memory - b.reserved - used))
	tell(&out.Reserved, b.reserved != 0, float64(b.reserved))

	mapped := int64(mebi) // for the driver
	if used > 0 {
		mapped += 4*mebi + 64*mebi*(d.physics.plan.mates-1) // buffers the boards of a job reach each other's memory through
	}
	tell(&out.Bar1Limit, b.window != 0, float64(b.window))
	tell(&out.Bar1Usage, b.window != 0, float64(mapped))
	tell(&out.ProtectedLimit, b.vendor == nvidia, 0) // confidential computing is off
	tell(&out.ProtectedUsage, b.vendor == nvidia, 0)
}
