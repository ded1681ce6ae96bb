//go:build cgo

package nvml

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Each count of the driver's, however it is asked for, is left out once when it slips, and goes on
// from below when it was reset.
func TestCountsThatSlip(t *testing.T) {
	d := answering("GPU-0")
	count := uint64(0)
	d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 1000 * count, nvml.SUCCESS }
	d.GetMemoryErrorCounterFunc = func(nvml.MemoryErrorType, nvml.EccCounterType, nvml.MemoryLocation) (uint64, nvml.Return) {
		return count, nvml.SUCCESS
	}
	d.GetSramEccErrorStatusFunc = func() (nvml.EccSramErrorStatus, nvml.Return) {
		return nvml.EccSramErrorStatus{
			VolatileUncParity: count, VolatileUncSecDed: count, AggregateUncParity: count, AggregateUncSecDed: count, AggregateUncBucketL2: count,
		}, nvml.SUCCESS
	}
	n := started(t, newFakeLibrary(d))
	h := n.list()[0]
	for i, s := range []struct {
		count uint64
		want  bool
	}{{10, true}, {3, false}, {11, true}, {0, false}, {0, true}, {1, true}, {2, true}} {
		count = s.count
		d.fields(map[uint32]nvml.FieldValue{
			3: valued(ull, count), 142: valued(u32, count), 75: valued(ull, 1e9*count), 94: valued(u32, count), 91: valued(u32, 1), 163: valued(ull, count),
		})
		out := n.read(h)
		const corrected = telemetry.ECCErrorTypeCorrected
		for what, v := range map[string]metric.Value{
			"energy": out.Power.Energy, "errors": out.ECC.Errors[corrected], "rows": out.Repair.RowRemapRows[corrected],
			"errors of DRAM":    out.ECC.LocationErrors[corrected][telemetry.ECCLocationDram],
			"lifetime of SRAM":  out.ECC.LocationLifetimeErrors[corrected][telemetry.ECCLocationSram],
			"parity":            out.ECC.SramUncorrectedErrors[telemetry.ECCSramCheckParity],
			"parity, lifetime":  out.ECC.SramUncorrectedLifetimeErrors[telemetry.ECCSramCheckParity],
			"L2":                out.ECC.SramUnitLifetimeErrors[telemetry.ECCSramUnitL2],
			"throttled by heat": out.Throttle.PolicyTime[telemetry.ThrottlePolicyThermal],
			"replays of PCIe":   linksOf(out, pcie)[0].Errors[telemetry.LinkErrorTypeReplay],
			"CRC of an NVLink":  linksOf(out, nvlink)[0].Errors[telemetry.LinkErrorTypeCrc],
		} {
			if s.want {
				want(t, what, v, float64(s.count))
			} else {
				want(t, what, v, metric.Implausible)
			}
		}
		if t.Failed() {
			t.Fatalf("at read %d, of %d", i, s.count)
		}
	}
}

// A driver that has been loaded anew counts from 0, and is believed at once.
func TestCountsOfNewDriver(t *testing.T) {
	d, count := answering("GPU-0"), uint64(10)
	d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 1000 * count, nvml.SUCCESS }
	d.GetMemoryErrorCounterFunc = func(nvml.MemoryErrorType, nvml.EccCounterType, nvml.MemoryLocation) (uint64, nvml.Return) {
		return count, nvml.SUCCESS
	}
	n := started(t, newFakeLibrary(d))
	h := n.list()[0]
	for _, count = range []uint64{10, 2} {
		d.fields(map[uint32]nvml.FieldValue{3: valued(ull, count)})
		out := n.read(h)
		want(t, "energy", out.Power.Energy, float64(count))
		want(t, "errors", out.ECC.Errors[telemetry.ECCErrorTypeCorrected], float64(count))
		want(t, "errors of DRAM", out.ECC.LocationErrors[telemetry.ECCErrorTypeCorrected][telemetry.ECCLocationDram], float64(count))
		h.release()
		n.list()
	}
}

// What a device refused is not asked again for ten minutes, and then once.
func TestRefusalsAreForgotten(t *testing.T) {
	d := answering("GPU-0")
	margins, fields := 0, 0
	d.GetMarginTemperatureFunc = func() (nvml.MarginTemperature, nvml.Return) {
		margins++
		return nvml.MarginTemperature{MarginTemperature: 7}, nvml.ERROR_NOT_SUPPORTED
	}
	d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		for i := range values {
			zero(&values[i])
			if values[i].FieldId == 82 {
				fields++
				values[i].NvmlReturn = uint32(nvml.ERROR_INVALID_ARGUMENT)
			}
		}
		return nvml.SUCCESS
	}
	n := started(t, newFakeLibrary(d))
	h := n.list()[0]
	for _, s := range []struct {
		minutes time.Duration
		asked   int
	}{{0, 1}, {1, 1}, {8, 1}, {2, 2}, {1, 2}, {8, 2}, {2, 3}} {
		n.turn(s.minutes * time.Minute)
		out := n.read(h)
		want(t, "margin", out.Thermal.TemperatureMargin, metric.Unsupported)
		want(t, "a number the driver does not know", out.Thermal.Temperature[telemetry.TemperatureSensorMemory], metric.Unsupported)
		if margins != s.asked || fields != s.asked {
			t.Errorf("%d minutes on: asked %d and %d times, want %d", s.minutes, margins, fields, s.asked)
		}
	}
	d.GetMarginTemperatureFunc = func() (nvml.MarginTemperature, nvml.Return) {
		return nvml.MarginTemperature{MarginTemperature: 7}, nvml.SUCCESS
	}
	n.turn(2 * forgetEvery)
	want(t, "margin of a device that has come to it", n.read(h).Thermal.TemperatureMargin, 7.)
}

// That rights are lacking is said once of a device, and is no fault of its.
func TestDeniedIsSaidOnce(t *testing.T) {
	var said strings.Builder
	past := newArchive()
	past.log = slog.New(slog.NewTextHandler(&said, nil))
	devices := [2]*fakeDevice{answering("GPU-0"), answering("GPU-1")}
	for _, d := range devices {
		d.GetSramEccErrorStatusFunc = func() (nvml.EccSramErrorStatus, nvml.Return) {
			return nvml.EccSramErrorStatus{}, nvml.ERROR_NO_PERMISSION
		}
		d.fields(map[uint32]nvml.FieldValue{190: failing(nvml.ERROR_NO_PERMISSION)})
	}
	r, err := open(newFakeLibrary(devices[0], devices[1]), config(), past, everything())
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, r)
	all, err := r.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for _, d := range all {
			var out telemetry.Device
			if why := d.Read(t.Context(), &out); why != nil {
				t.Fatal(why.Text)
			}
			want(t, "SRAM", out.ECC.SramThresholdExceeded, metric.Denied)
			want(t, "limit", out.Power.Limit[telemetry.PowerLimitTypeEnforced], metric.Denied)
		}
	}
	if n := strings.Count(said.String(), "more rights"); n != 2 || metric.Denied.Fault {
		t.Errorf("said %d times of two devices:\n%s", n, said.String())
	}
}
