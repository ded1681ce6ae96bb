//go:build cgo

package nvml_test

import (
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// Errors, repairs, modes and firmware of a board, each from the call or the number that tells it.
func TestDriverHealth(t *testing.T) {
	alone(t, fakenvml.Driver("595"), func(d driver) {
		d.tell("gpus 3", "board b200 0", "board v100 1", "board rtx4080 2",
			"set 0 sram_corrected 1", "set 0 sram_uncorrected_lifetime 2", "set 0 sram_parity 3", "set 0 sram_secded 4", "set 0 sram_parity_lifetime 5",
			"set 0 sram_secded_lifetime 6", "set 0 sram_l2 7", "set 0 sram_sm 8", "set 0 sram_pcie 9", "set 0 sram_mcu 10", "set 0 sram_other 11", "set 0 sram_exceeded 1",
			"set 0 ecc_corrected 21", "set 0 ecc_uncorrected_lifetime 12", "set 0 remap_corrected 13", "set 0 remap_uncorrected_inactive 14", "set 0 remap_pending 1",
			"set 0 banks_low 15", "set 0 repair_tpc 1", "set 0 unrepairable 1", "recovery 0 4", "fabric 0 3 0 2 0x1192", "set 0 throttle_thermal 16000000000",
			"set 1 retired_sbe 17", "set 1 retired_dbe 18", "set 1 retired_pending 1", "recovery 1 9", "set 2 fan 40", "set 2 compute_mode 3", "set 2 enc_sessions 0")
		r := d.open()
		defer d.close(r)
		devices := d.list(r)
		b200, v100, rtx := d.read(devices[0]), d.read(devices[1]), d.read(devices[2])
		const corrected, uncorrected = telemetry.ECCErrorTypeCorrected, telemetry.ECCErrorTypeUncorrected
		const dram, sram = telemetry.ECCLocationDram, telemetry.ECCLocationSram
		ecc, repair := b200.ECC, b200.Repair
		d.want("corrected", ecc.Errors[corrected], 21)
		d.want("corrected in DRAM", ecc.LocationErrors[corrected][dram], 20)
		d.want("corrected in SRAM", ecc.LocationErrors[corrected][sram], 1)
		d.want("uncorrected in DRAM, lifetime", ecc.LocationLifetimeErrors[uncorrected][dram], 10)
		d.want("uncorrected in SRAM, lifetime", ecc.LocationLifetimeErrors[uncorrected][sram], 2)
		d.lacks("corrected in L1", ecc.LocationErrors[corrected][telemetry.ECCLocationL1Cache], metric.Unsupported)
		for i, v := range []metric.Value{
			ecc.SramUncorrectedErrors[telemetry.ECCSramCheckParity], ecc.SramUncorrectedErrors[telemetry.ECCSramCheckSecded],
			ecc.SramUncorrectedLifetimeErrors[telemetry.ECCSramCheckParity], ecc.SramUncorrectedLifetimeErrors[telemetry.ECCSramCheckSecded],
			ecc.SramUnitLifetimeErrors[telemetry.ECCSramUnitL2], ecc.SramUnitLifetimeErrors[telemetry.ECCSramUnitSM], ecc.SramUnitLifetimeErrors[telemetry.ECCSramUnitPCIE],
			ecc.SramUnitLifetimeErrors[telemetry.ECCSramUnitMicrocontroller], ecc.SramUnitLifetimeErrors[telemetry.ECCSramUnitOther],
		} {
			d.want("SRAM", v, float64(3+i))
		}
		d.want("threshold", ecc.SramThresholdExceeded, 1)
		d.want("rows", repair.RowRemapRows[corrected], 13)
		d.want("inactive rows", repair.RowRemapInactiveRows[uncorrected], 14)
		d.want("rows pending", repair.RowRemapPending, 1)
		d.want("banks with few left", repair.RowRemapBanks[telemetry.RowRemapAvailabilityLow], 15)
		d.want("TPC", repair.Pending[telemetry.RepairPartTpc], 1)
		d.want("channel", repair.Pending[telemetry.RepairPartChannel], 0)
		d.want("unrepairable", repair.MemoryUnrepairable, 1)
		d.want("drain and reset", repair.RecoveryAction[telemetry.RecoveryActionDrainAndReset], 1)
		d.want("reset", repair.RecoveryAction[telemetry.RecoveryActionReset], 0)
		d.lacks("pages of a board that replaces rows", repair.RetiredPagesPending, metric.Unsupported)
		d.want("degraded", b200.Fabric.Fault[telemetry.FabricFaultDegradedBandwidth], 0)
		d.want("unhealthy route", b200.Fabric.Fault[telemetry.FabricFaultRouteUnhealthy], 1)
		d.want("unhealthy", b200.Fabric.Health[telemetry.FabricHealthUnhealthy], 1)
		d.want("links to the fabric", b200.Fabric.Links, 18)
		d.want("throttled by heat, as a policy", b200.Throttle.PolicyTime[telemetry.ThrottlePolicyThermal], 16)
		d.want("slowdown, as an offset", b200.Thermal.TemperatureMarginLimit[telemetry.TemperatureLimitTypeSlowdown], -2)
		d.lacks("slowdown, as a temperature", b200.Thermal.TemperatureLimit[telemetry.TemperatureLimitTypeSlowdown], metric.Unsupported)
		d.want("share of the peak current", b200.Power.EdppMultiplier, 1)

		d.want("pages of single bits", v100.Repair.RetiredPages[telemetry.RetiredPagesCauseSingleBit], 17)
		d.want("pages of double bits", v100.Repair.RetiredPages[telemetry.RetiredPagesCauseDoubleBit], 18)
		d.want("pages pending", v100.Repair.RetiredPagesPending, 1)
		d.lacks("rows of a board that retires pages", v100.Repair.RowRemapPending, metric.Unsupported)
		d.want("an action to come", v100.Repair.RecoveryAction[telemetry.RecoveryActionUnknown], 1)
		d.want("slowdown, as a temperature", v100.Thermal.TemperatureLimit[telemetry.TemperatureLimitTypeSlowdown], 89)
		d.lacks("slowdown, as an offset", v100.Thermal.TemperatureMarginLimit[telemetry.TemperatureLimitTypeSlowdown], metric.Unsupported)
		d.lacks("JPEG", v100.Utilization.MediaUtilization[telemetry.MediaEngineJPEG], metric.Unsupported)

		d.lacks("errors of a board without", rtx.ECC.Errors[corrected], metric.Unsupported)
		d.lacks("links to the fabric of a board without", rtx.Fabric.Links, metric.Unsupported)
		if len(rtx.Fan.Speed) != 1 {
			d.Fatalf("%d fans", len(rtx.Fan.Speed))
		}
		d.want("fan", rtx.Fan.Speed[0].Value, 0.4)
		d.want("one process", rtx.Mode.ComputeMode[telemetry.ComputeModeExclusiveProcess], 1)
		d.want("display", rtx.Mode.DisplayActive, 1)
		d.lacks("frames of no session", rtx.Encoder.FrameRate, metric.NoData)
	})
}

// A spike between two reads is seen, and power adds up to energy where the board keeps no count.
func TestDriverPower(t *testing.T) {
	alone(t, "", func(d driver) {
		usual := []string{"gpus 2", "fail nvmlDeviceGetTotalEnergyConsumption 3 1"}
		d.tell(usual...)
		r := d.open()
		defer d.close(r)
		devices := d.list(r)
		look := func() [2]*telemetry.Device {
			var out [2]*telemetry.Device
			for i, x := range devices {
				x.(source.Sampled).Sample(d.Context())
				out[i] = d.read(x)
			}
			return out
		}
		first, start := look(), time.Now()
		d.want("energy by its samples", first[1].Power.Energy, 0)
		time.Sleep(500 * time.Millisecond)
		d.tell(append(usual, "set * power 900000")...)
		time.Sleep(500 * time.Millisecond)
		d.tell(usual...)
		time.Sleep(500 * time.Millisecond)
		second, took := look(), time.Since(start).Seconds()
		for i, x := range second {
			d.want("draw", x.Power.Draw, float64(300+10*i))
			d.want("peak", x.Power.Peak, 900)
			before, _ := first[i].Power.Energy.Get()
			after, ok := x.Power.Energy.Get()
			if used := after - before; !ok || used < 300*(took-0.8)+600*0.4 || used > 310*(took+0.2)+600*1.2 {
				d.Errorf("GPU %d: %v J in %v s, at 300 W and half a second at 900 W", i, used, took)
			}
		}
	})
}

// What only root may see is left out, and the rest of the board is not.
func TestDriverDenies(t *testing.T) {
	alone(t, "", func(d driver) {
		d.tell("gpus 2", "fail nvmlDeviceGetSramEccErrorStatus 4 0", "field 0 190 error 4", "field 0 3 error 2", "field 0 82 error 999")
		r := d.open()
		defer d.close(r)
		devices := d.list(r)
		for range 2 {
			out := d.read(devices[0])
			d.lacks("SRAM", out.ECC.SramThresholdExceeded, metric.Denied)
			d.lacks("limit", out.Power.Limit[telemetry.PowerLimitTypeEnforced], metric.Denied)
			d.lacks("errors by a number it does not know", out.ECC.Errors[telemetry.ECCErrorTypeCorrected], metric.Unsupported)
			if why := out.Thermal.Temperature[telemetry.TemperatureSensorMemory].Why(); why == nil || !why.Fault {
				d.Errorf("a number that fails: %v", why)
			}
			d.want("another limit", out.Power.Limit[telemetry.PowerLimitTypeMax], 700)
			d.want("SRAM of the other", d.read(devices[1]).ECC.SramThresholdExceeded, 0)
		}
	})
}
