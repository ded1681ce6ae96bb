package sim

import "github.com/gpumeter/gpumeter/exporter/telemetry"

// rowRemapping is the XID of a row being replaced after an uncorrected error.
const rowRemapping = 63

// repair tells of rows replaced: one with each XID that says so. Spare rows never run out here.
func (d *device) repair(out *telemetry.Repair) {
	replaced := int64(0)
	for i, f := range faultSorts {
		if f.xid == rowRemapping {
			replaced += d.faults.count(i, d.physics.tick)
		}
	}
	tell(&out.RowRemapRows[telemetry.ECCErrorTypeCorrected], d.board.banks != 0, 0)
	tell(&out.RowRemapRows[telemetry.ECCErrorTypeUncorrected], d.board.banks != 0, float64(replaced))
	tell(&out.RowRemapPending, d.board.banks != 0, 0)
	tell(&out.RowRemapFailure, d.board.banks != 0, 0)
}
