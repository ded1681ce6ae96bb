package sim

import "github.com/gpumeter/gpumeter/exporter/telemetry"

// mode tells how a board is set: as it comes, with the persistence that data centres give it.
func (d *device) mode(out *telemetry.Mode) {
	b := d.board
	ours := b.vendor == nvidia
	state := b.states.most
	if d.physics.now.busy == 0 {
		state = b.states.rest
	}
	tell(&out.PerformanceState, ours, float64(state))
	for i := range out.MIGEnabled {
		tell(&out.MIGEnabled[i], b.mig, one(len(b.parts) > 0))
	}
	tell(&out.PersistenceEnabled, ours, one(!b.consumer))
	for i := range out.ComputeMode {
		tell(&out.ComputeMode[i], ours, one(telemetry.ComputeMode(i) == telemetry.ComputeModeDefault))
	}
	tell(&out.DisplayActive, ours, 0)
	tell(&out.AccountingEnabled, ours, 0)
	tell(&out.ConfidentialComputeEnabled, b.age >= hopper, 0)
	tell(&out.C2cEnabled, b.age >= hopper, 0)
}
