package sim

import "github.com/gpumeter/gpumeter/exporter/telemetry"

// fabric tells of the switches of the node. A node that is no part of a rack has joined a fabric of
// its own, which has no name; what goes wrong in it only Blackwell says, and of that not all.
func (d *device) fabric(out *telemetry.Fabric) {
	b := d.board
	joins := b.nvlink.links != 0 && b.age >= hopper
	for i := range out.State {
		tell(&out.State[i], joins, one(telemetry.FabricState(i) == telemetry.FabricStateCompleted))
	}
	for i := range out.Health {
		tell(&out.Health[i], joins && b.age >= blackwell, one(telemetry.FabricHealth(i) == telemetry.FabricHealthHealthy))
	}
	for i := range out.Fault {
		tell(&out.Fault[i], joins && b.age >= blackwell && telemetry.FabricFault(i) == telemetry.FabricFaultAccessTimeout, 0)
	}
	tell(&out.Error, joins, 0)
	tell(&out.Links, b.nvlink.links != 0, float64(b.nvlink.links))
	if joins {
		out.Info = d.about.fabric
	}
}
