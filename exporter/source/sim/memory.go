package sim

import "github.com/gpumeter/gpumeter/exporter/telemetry"

func (d *device) memory(out *telemetry.Memory) {
	b, used := d.board, int64(0)
	for i := range d.physics.duties {
		used += d.physics.duties[i].used(d.physics.tick)
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
