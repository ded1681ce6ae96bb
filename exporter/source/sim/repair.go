package sim

import "github.com/gpumeter/gpumeter/exporter/telemetry"

// rowRemapping is the XID of a row being replaced after an uncorrected error.
const rowRemapping = 63

// repair tells of rows replaced: one with each XID that says so, each in a bank of its own, of which
// there are enough for centuries. It is in use after the reset that the driver then asks for. Of a board that is split only the
// banks are told.
func (d *device) repair(out *telemetry.Repair) {
	b, tick := d.board, d.physics.tick
	replaced, pending, has := int64(0), false, b.banks != 0
	for i, f := range faultSorts {
		if f.xid == rowRemapping {
			replaced += d.faults.count(i, tick)
			pending = pending || d.faults.waits(i, tick)
		}
	}
	action := d.faults.action(tick)
	rows := has && len(d.partitions) == 0
	tell(&out.RowRemapRows[telemetry.ECCErrorTypeCorrected], rows, 0)
	tell(&out.RowRemapRows[telemetry.ECCErrorTypeUncorrected], rows, float64(replaced))
	tell(&out.RowRemapPending, rows, one(pending))
	tell(&out.RowRemapFailure, rows, 0)

	touched := min(replaced, b.banks)
	for i := range out.RowRemapBanks {
		tell(&out.RowRemapBanks[i], has, 0)
	}
	tell(&out.RowRemapBanks[telemetry.RowRemapAvailabilityMax], has, float64(b.banks-touched))
	tell(&out.RowRemapBanks[telemetry.RowRemapAvailabilityHigh], has, float64(touched))

	for i := range out.RecoveryAction {
		tell(&out.RecoveryAction[i], b.vendor == nvidia, one(telemetry.RecoveryAction(i) == action))
	}
	for i := range out.Pending {
		tell(&out.Pending[i], b.age >= hopper, 0)
	}
}
