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
}
