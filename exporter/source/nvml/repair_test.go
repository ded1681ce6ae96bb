//go:build cgo

package nvml

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// The action that holds is 1 and the others are 0. One that came after this version is not taken
// for none, and what can be no action at all says nothing.
func TestRecoveryAction(t *testing.T) {
	minus1 := int64(-1)
	for name, c := range map[string]struct {
		value nvml.FieldValue
		holds telemetry.RecoveryAction
		why   *metric.Reason // instead: none is told
	}{
		"none":          {value: valued(u32, 0), holds: telemetry.RecoveryActionNone},
		"reset":         {value: valued(u32, 1), holds: telemetry.RecoveryActionReset},
		"reboot":        {value: valued(u32, 2), holds: telemetry.RecoveryActionReboot},
		"drain P2P":     {value: valued(u32, 3), holds: telemetry.RecoveryActionDrainP2p},
		"drain, reset":  {value: valued(u32, 4), holds: telemetry.RecoveryActionDrainAndReset},
		"recover IMEX":  {value: valued(u32, 5), holds: telemetry.RecoveryActionRecoverImex},
		"one to come":   {value: valued(u32, 6), holds: telemetry.RecoveryActionUnknown},
		"the last":      {value: valued(u32, 255), holds: telemetry.RecoveryActionUnknown},
		"garbage":       {value: valued(u32, 808334905), why: metric.Implausible},
		"all ones":      {value: valued(u32, 0xffff_ffff), why: metric.Implausible},
		"below zero":    {value: valued(nvml.VALUE_TYPE_SIGNED_LONG_LONG, uint64(minus1)), why: metric.Implausible},
		"not supported": {value: failing(nvml.ERROR_NOT_SUPPORTED), why: metric.Unsupported},
		"no permission": {value: failing(nvml.ERROR_NO_PERMISSION), why: metric.Denied},
	} {
		d := answering("GPU-0")
		d.fields(map[uint32]nvml.FieldValue{230: c.value})
		out, why := readOnce(t, newFakeLibrary(d))
		if why != nil {
			t.Fatal(why)
		}
		for i, v := range out.Repair.RecoveryAction {
			what := name + ": " + telemetry.RecoveryAction(i).String()
			switch {
			case c.why != nil:
				want(t, what, v, c.why)
			case telemetry.RecoveryAction(i) == c.holds:
				want(t, what, v, 1.)
			default:
				want(t, what, v, 0.)
			}
		}
	}
}

// Before R570 the number means nothing.
func TestRecoveryActionOfOldDriver(t *testing.T) {
	d := answering("GPU-0")
	d.fields(map[uint32]nvml.FieldValue{230: valued(u32, 1)})
	l := newFakeLibrary(d)
	l.driver = "565.57.01"
	out, _ := readOnce(t, l)
	for i, v := range out.Repair.RecoveryAction {
		want(t, telemetry.RecoveryAction(i).String(), v, metric.Unsupported)
	}
}

func TestRepair(t *testing.T) {
	d := answering("GPU-0")
	d.fields(map[uint32]nvml.FieldValue{
		142: valued(u32, 3), 143: valued(u32, 1), 144: valued(u32, 1), 145: valued(u32, 0), 301: valued(u32, 2), 302: valued(u32, 0),
		29: valued(ull, 60), 30: valued(ull, 4), 31: valued(u32, 1),
	})
	d.GetRowRemapperHistogramFunc = func() (nvml.RowRemapperHistogramValues, nvml.Return) {
		return nvml.RowRemapperHistogramValues{Max: 2555, High: 2, Partial: 1, Low: 4, None: 3}, nvml.SUCCESS
	}
	d.GetRepairStatusFunc = func() (nvml.RepairStatus, nvml.Return) {
		return nvml.RepairStatus{BChannelRepairPending: 1}, nvml.SUCCESS
	}
	d.GetUnrepairableMemoryFlag_v1Func = func() (nvml.UnrepairableMemoryStatus_v1, nvml.Return) {
		return nvml.UnrepairableMemoryStatus_v1{BUnrepairableMemory: 1}, nvml.SUCCESS
	}
	l := newFakeLibrary(d)
	l.driver = "595.71.05"
	out, _ := readOnce(t, l)
	r := out.Repair
	const corrected, uncorrected = telemetry.ECCErrorTypeCorrected, telemetry.ECCErrorTypeUncorrected
	want(t, "rows for corrected errors", r.RowRemapRows[corrected], 3.)
	want(t, "rows for uncorrected errors", r.RowRemapRows[uncorrected], 1.)
	want(t, "rows pending", r.RowRemapPending, 1.)
	want(t, "rows failed", r.RowRemapFailure, 0.)
	want(t, "inactive rows for corrected errors", r.RowRemapInactiveRows[corrected], 2.)
	want(t, "inactive rows for uncorrected errors", r.RowRemapInactiveRows[uncorrected], 0.)
	want(t, "pages of single bits", r.RetiredPages[telemetry.RetiredPagesCauseSingleBit], 60.)
	want(t, "pages of double bits", r.RetiredPages[telemetry.RetiredPagesCauseDoubleBit], 4.)
	want(t, "pages pending", r.RetiredPagesPending, 1.)
	for availability, banks := range map[telemetry.RowRemapAvailability]float64{
		telemetry.RowRemapAvailabilityMax: 2555, telemetry.RowRemapAvailabilityHigh: 2, telemetry.RowRemapAvailabilityPartial: 1,
		telemetry.RowRemapAvailabilityLow: 4, telemetry.RowRemapAvailabilityNone: 3,
	} {
		want(t, availability.String(), r.RowRemapBanks[availability], banks)
	}
	want(t, "channel", r.Pending[telemetry.RepairPartChannel], 1.)
	want(t, "TPC", r.Pending[telemetry.RepairPartTpc], 0.)
	want(t, "unrepairable memory", r.MemoryUnrepairable, 1.)

	l = newFakeLibrary(d)
	l.driver, l.missing = "570.124.06", []string{"nvmlDeviceGetRepairStatus", "nvmlDeviceGetUnrepairableMemoryFlag_v1"}
	out, _ = readOnce(t, l)
	want(t, "inactive rows, before R595", out.Repair.RowRemapInactiveRows[corrected], metric.Unsupported)
	want(t, "channel, before R580", out.Repair.Pending[telemetry.RepairPartChannel], metric.Unsupported)
	want(t, "unrepairable memory, before R590", out.Repair.MemoryUnrepairable, metric.Unsupported)
	want(t, "rows", out.Repair.RowRemapRows[corrected], 3.)
}
