//go:build cgo

package nvml

import "github.com/gpumeter/gpumeter/exporter/telemetry"

// repair reads what is to be mended; rows, pages and the recovery action are fields.
func repair(p *pass, out *telemetry.Repair) {
	b, why := call(p, askBanks, 0, p.dev.GetRowRemapperHistogram)
	for i, n := range [...]uint32{
		telemetry.RowRemapAvailabilityMax:     b.Max,
		telemetry.RowRemapAvailabilityHigh:    b.High,
		telemetry.RowRemapAvailabilityPartial: b.Partial,
		telemetry.RowRemapAvailabilityLow:     b.Low,
		telemetry.RowRemapAvailabilityNone:    b.None,
	} {
		put(&out.RowRemapBanks[i], why, "{bank}", whole, n)
	}
	r, why := call(p, askRepair, 0, p.dev.GetRepairStatus)
	put(&out.Pending[telemetry.RepairPartChannel], why, state, whole, r.BChannelRepairPending)
	put(&out.Pending[telemetry.RepairPartTpc], why, state, whole, r.BTpcRepairPending)
	u, why := call(p, askUnrepairable, 0, p.dev.GetUnrepairableMemoryFlag_v1)
	put(&out.MemoryUnrepairable, why, state, whole, u.BUnrepairableMemory)
}
