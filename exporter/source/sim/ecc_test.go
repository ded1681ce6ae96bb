package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// accounted says what does not add up of the errors of memory: places to the whole, what was found
// since the driver was loaded to the life, checks and units to the memory on the chip.
func accounted(x *telemetry.ECC) (wrong []string) {
	sum := func(all ...metric.Value) (n float64) {
		for _, v := range all {
			one, _ := v.Get()
			n += one
		}
		return n
	}
	want := func(what string, got, whole float64) {
		if got != whole {
			wrong = append(wrong, fmt.Sprintf("%s: %v of %v errors", what, got, whole))
		}
	}
	const sram = telemetry.ECCLocationSram
	for i, at := range x.LocationErrors {
		if _, told := at[sram].Get(); told {
			sort := telemetry.ECCErrorType(i).String()
			want("places of "+sort, sum(at[:]...), sum(x.Errors[i]))
			want("places of "+sort+" in the life", sum(x.LocationLifetimeErrors[i][:]...), sum(x.LifetimeErrors[i]))
		}
	}
	const uncorrected = telemetry.ECCErrorTypeUncorrected
	want("checks", sum(x.SramUncorrectedErrors[:]...), sum(x.LocationErrors[uncorrected][sram]))
	want("checks in the life", sum(x.SramUncorrectedLifetimeErrors[:]...), sum(x.LocationLifetimeErrors[uncorrected][sram]))
	want("units", sum(x.SramUnitLifetimeErrors[:]...), sum(x.LocationLifetimeErrors[uncorrected][sram]))
	return wrong
}

// Errors of both sorts are found in both memories, and no board has all of them in one unit by chance.
func TestErrorsHavePlaces(t *testing.T) {
	c, devices := start(t, "h100x8", 1)
	c.moveTo(longEnough)
	units := map[string]bool{}
	for i, d := range devices {
		x := read(t, d)
		for sort, at := range x.ECC.LocationErrors {
			for _, place := range []telemetry.ECCLocation{telemetry.ECCLocationDram, telemetry.ECCLocationSram} {
				if number(t, at[place]) == 0 {
					t.Errorf("board %d: no %v error of %v", i, telemetry.ECCErrorType(sort), place)
				}
			}
		}
		for unit, v := range x.ECC.SramUnitLifetimeErrors {
			if number(t, v) > 0 {
				units[telemetry.ECCSramUnit(unit).String()] = true
			}
		}
		if wrong := accounted(&x.ECC); wrong != nil {
			t.Errorf("board %d: %s", i, strings.Join(wrong, "; "))
		}
	}
	if len(units) != 2 {
		t.Errorf("units with errors: %v; want the multiprocessors of some boards, the cache of others", units)
	}
}

// The driver asks for something from a fault on until the job that was at work has ended, for one
// thing at a time, and while a row waits to be replaced it asks for a reset.
func TestRecovery(t *testing.T) {
	c, devices := start(t, "h100x4", 1)
	asked := map[telemetry.RecoveryAction]int{}
	for _, d := range devices {
		dev := d.(*device)
		for cycle := range int64(400) {
			c.moveTo(time.Duration(cycle*cycleTicks) * time.Second)
			before := read(t, d)
			if number(t, before.Repair.RecoveryAction[telemetry.RecoveryActionNone]) != 1 {
				t.Fatalf("cycle %d begins with something to be done", cycle)
			}
			for i, f := range faultSorts {
				at := dev.faults.at[i]
				if f.action == telemetry.RecoveryActionNone || at == never {
					continue
				}
				c.moveTo(time.Duration(cycle*cycleTicks+at) * time.Second)
				x := read(t, d)
				holds := 0.0
				for action, v := range x.Repair.RecoveryAction {
					holds += number(t, v)
					if number(t, v) == 1 {
						asked[telemetry.RecoveryAction(action)]++
					}
				}
				pending := number(t, x.Repair.RowRemapPending)
				if holds != 1 || number(t, x.Repair.RecoveryAction[telemetry.RecoveryActionNone]) == 1 || f.xid == rowRemapping && pending != 1 {
					t.Errorf("after XID %d, %v actions hold: %v; rows wait: %v", f.xid, holds, x.Repair.RecoveryAction, pending)
				}
			}
		}
		x := read(t, d)
		rows, banks := 0.0, 0.0
		for _, v := range x.Repair.RowRemapRows {
			rows += number(t, v)
		}
		for _, v := range x.Repair.RowRemapBanks {
			banks += number(t, v)
		}
		most := number(t, x.Repair.RowRemapBanks[telemetry.RowRemapAvailabilityMax])
		if rows == 0 || banks != float64(dev.board.banks) || most+rows != banks {
			t.Errorf("%v rows are replaced, %v of %v banks have all of their spare ones", rows, most, banks)
		}
	}
	if asked[telemetry.RecoveryActionReset] == 0 || asked[telemetry.RecoveryActionDrainAndReset] == 0 || len(asked) != 2 {
		t.Errorf("asked for %v", asked)
	}
}
