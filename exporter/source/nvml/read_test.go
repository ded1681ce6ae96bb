//go:build cgo

package nvml

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func TestReasons(t *testing.T) {
	for _, c := range []struct {
		ret  nvml.Return
		want *metric.Reason // nil: a fault of NVML's own
		down bool
	}{
		{nvml.ERROR_NOT_SUPPORTED, metric.Unsupported, false},
		{nvml.ERROR_FUNCTION_NOT_FOUND, metric.Unsupported, false},
		{nvml.ERROR_ARGUMENT_VERSION_MISMATCH, metric.Unsupported, false},
		{nvml.ERROR_DEPRECATED, metric.Unsupported, false},
		{nvml.ERROR_VGPU_ECC_NOT_SUPPORTED, metric.Unsupported, false},
		{nvml.ERROR_NO_PERMISSION, metric.Denied, false},
		{nvml.ERROR_NO_DATA, metric.NoData, false},
		{nvml.ERROR_NOT_READY, metric.NoData, false},
		{nvml.ERROR_GPU_IS_LOST, metric.Lost, true},
		{nvml.ERROR_GPU_NOT_FOUND, metric.Lost, true},
		{nvml.ERROR_UNINITIALIZED, metric.Lost, true},
		{nvml.ERROR_DRIVER_NOT_LOADED, metric.Lost, true},
		{nvml.ERROR_RESET_REQUIRED, nil, true},
		{nvml.ERROR_LIB_RM_VERSION_MISMATCH, nil, true},
		{nvml.ERROR_TIMEOUT, nil, false},
		{nvml.ERROR_UNKNOWN, nil, false},
		{nvml.ERROR_NOT_FOUND, nil, false},
		{nvml.Return(4711), nil, false},
	} {
		d := answering("GPU-0")
		d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 350_000, c.ret }
		out, why := readOnce(t, newFakeLibrary(d))
		got := out.Power.Draw.Why()
		switch {
		case (why != nil) != c.down:
			t.Errorf("%d: the whole read failed with %v; should it: %v", c.ret, why, c.down)
		case c.down && why != got:
			t.Errorf("%d: the read fails with %v, the reading with %v", c.ret, why, got)
		case c.want != nil && got != c.want:
			t.Errorf("%d: %v, want %v", c.ret, got, c.want)
		case c.want == nil && (got == nil || !got.Fault || got == metric.Failed || got == metric.Late):
			t.Errorf("%d: %v, want a fault of NVML's own", c.ret, got)
		}
		if _, asked := d.asked["GetTotalEnergyConsumptionFunc"]; asked == c.down {
			t.Errorf("%d: asked on: %v", c.ret, asked)
		}
	}
}

// Failing must cost nothing: reasons are made once.
func TestReasonsAreNotMade(t *testing.T) {
	for _, ret := range []nvml.Return{nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_UNKNOWN, nvml.Return(4711)} {
		if n := testing.AllocsPerRun(100, func() { _, _ = reason(ret) }); n != 0 {
			t.Errorf("%d: %v allocations", ret, n)
		}
	}
}

// Some drivers refuse the argument where they mean that they can not.
func TestPatience(t *testing.T) {
	d := answering("GPU-0")
	ret := nvml.ERROR_INVALID_ARGUMENT
	d.GetTemperatureThresholdFunc = func(limit nvml.TemperatureThresholds) (uint32, nvml.Return) {
		if limit == nvml.TEMPERATURE_THRESHOLD_MEM_MAX {
			return 0, ret
		}
		return 90, nvml.SUCCESS
	}
	devices, err := opened(t, newFakeLibrary(d)).Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fault := faults[nvml.ERROR_INVALID_ARGUMENT]
	for i, step := range []struct {
		ret nvml.Return
		why *metric.Reason
	}{
		{nvml.ERROR_INVALID_ARGUMENT, fault}, {nvml.ERROR_INVALID_ARGUMENT, fault},
		{nvml.ERROR_INVALID_ARGUMENT, metric.Unsupported}, {nvml.ERROR_INVALID_ARGUMENT, metric.Unsupported},
		{nvml.SUCCESS, metric.Unsupported}, // it is not asked again
	} {
		ret = step.ret
		var out telemetry.Device
		if why := devices[0].Read(t.Context(), &out); why != nil {
			t.Fatal(why)
		}
		limits := out.Thermal.TemperatureLimit
		if got := limits[telemetry.TemperatureLimitTypeMemoryMax].Why(); got != step.why {
			t.Errorf("read %d: %v, want %v", i, got, step.why)
		}
		want(t, "a limit that is there", limits[telemetry.TemperatureLimitTypeSlowdown], 90.)
	}
}

func TestImplausible(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*fakeDevice)
		of    func(*telemetry.Device) metric.Value
	}{
		{"power of all ones", func(d *fakeDevice) {
			d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0xffff_ffff, nvml.SUCCESS }
		}, func(d *telemetry.Device) metric.Value { return d.Power.Draw }},
		{"20.001 kW", func(d *fakeDevice) {
			d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 20_001_000, nvml.SUCCESS }
		}, func(d *telemetry.Device) metric.Value { return d.Power.Draw }},
		{"energy of all ones", func(d *fakeDevice) {
			d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 1<<64 - 1, nvml.SUCCESS }
		}, func(d *telemetry.Device) metric.Value { return d.Power.Energy }},
		{"energy 0x7ffffffffffffff0", func(d *fakeDevice) {
			d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 0x7fff_ffff_ffff_fff0, nvml.SUCCESS }
		}, func(d *telemetry.Device) metric.Value { return d.Power.Energy }},
		{"energy of 9.2e18", func(d *fakeDevice) {
			d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 9_200_000_000_000_000_000, nvml.SUCCESS }
		}, func(d *telemetry.Device) metric.Value { return d.Power.Energy }},
		{"9.2e18 errors", func(d *fakeDevice) {
			d.fields(map[uint32]nvml.FieldValue{3: valued(ull, 9_200_000_000_000_000_000)})
		}, func(d *telemetry.Device) metric.Value { return d.ECC.Errors[telemetry.ECCErrorTypeCorrected] }},
		{"808334905 banks", func(d *fakeDevice) {
			d.GetRowRemapperHistogramFunc = func() (nvml.RowRemapperHistogramValues, nvml.Return) {
				return nvml.RowRemapperHistogramValues{Max: 808334905}, nvml.SUCCESS
			}
		}, func(d *telemetry.Device) metric.Value {
			return d.Repair.RowRemapBanks[telemetry.RowRemapAvailabilityMax]
		}},
		{"808334905 percent", func(d *fakeDevice) {
			d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
				return nvml.Utilization{Gpu: 808334905, Memory: 3}, nvml.SUCCESS
			}
		}, func(d *telemetry.Device) metric.Value { return d.Utilization.Utilization }},
		{"101 percent of an encoder", func(d *fakeDevice) {
			d.GetEncoderUtilizationFunc = func() (uint32, uint32, nvml.Return) { return 101, 1000, nvml.SUCCESS }
		}, func(d *telemetry.Device) metric.Value {
			return d.Utilization.MediaUtilization[telemetry.MediaEngineEncoder]
		}},
		{"251 degrees", func(d *fakeDevice) {
			d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 251, nvml.SUCCESS }
		}, func(d *telemetry.Device) metric.Value {
			return d.Thermal.Temperature[telemetry.TemperatureSensorCore]
		}},
		{"51 degrees over the limit", func(d *fakeDevice) {
			d.GetMarginTemperatureFunc = func() (nvml.MarginTemperature, nvml.Return) {
				return nvml.MarginTemperature{MarginTemperature: -51}, nvml.SUCCESS
			}
		}, func(d *telemetry.Device) metric.Value { return d.Thermal.TemperatureMargin }},
		{"20.001 GHz", func(d *fakeDevice) {
			d.GetClockInfoFunc = func(nvml.ClockType) (uint32, nvml.Return) { return 20_001, nvml.SUCCESS }
		}, func(d *telemetry.Device) metric.Value { return d.Clock.Frequency[telemetry.ClockTypeSM] }},
		{"more memory used than there is", func(d *fakeDevice) {
			d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
				return nvml.Memory_v2{Total: 1 << 30, Used: 1<<30 + 1}, nvml.SUCCESS
			}
		}, func(d *telemetry.Device) metric.Value { return d.Memory.Limit }},
		{"no memory at all", func(d *fakeDevice) {
			d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{}, nvml.SUCCESS }
		}, func(d *telemetry.Device) metric.Value { return d.Memory.Usage }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := answering("GPU-0")
			c.spoil(d)
			out, why := readOnce(t, newFakeLibrary(d))
			if why != nil {
				t.Fatal(why)
			}
			want(t, c.name, c.of(out), metric.Implausible)
		})
	}
}

func TestUnits(t *testing.T) {
	d := answering("GPU-0")
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 350_250, nvml.SUCCESS }
	d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 5_000_500, nvml.SUCCESS }
	d.GetClockInfoFunc = func(c nvml.ClockType) (uint32, nvml.Return) { return 1000 + uint32(c), nvml.SUCCESS }
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		return nvml.Utilization{Gpu: 100, Memory: 25}, nvml.SUCCESS
	}
	d.GetMarginTemperatureFunc = func() (nvml.MarginTemperature, nvml.Return) {
		return nvml.MarginTemperature{MarginTemperature: -3}, nvml.SUCCESS
	}
	out, _ := readOnce(t, newFakeLibrary(d))
	want(t, "draw", out.Power.Draw, 350.25)
	want(t, "energy", out.Power.Energy, 5000.5)
	want(t, "memory clock", out.Clock.Frequency[telemetry.ClockTypeMemory], 1002e6)
	want(t, "utilization", out.Utilization.Utilization, 1.)
	want(t, "memory controller", out.Utilization.MemoryControllerUtilization, 0.25)
	want(t, "margin", out.Thermal.TemperatureMargin, -3.)
	want(t, "memory", out.Memory.Usage, float64(9<<30))
	want(t, "reserved memory", out.Memory.Reserved, float64(1<<30))
}
