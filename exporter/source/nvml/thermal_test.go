//go:build cgo

package nvml

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// The old call is asked as long as the driver has it and answers by it, and the new one from then on.
func TestCoreTemperature(t *testing.T) {
	for _, c := range []struct {
		name    string
		ret     nvml.Return // of the old call
		missing []string
		want    any
	}{
		{"both", nvml.SUCCESS, nil, 50.},
		{"the old one alone", nvml.SUCCESS, []string{"nvmlDeviceGetTemperatureV"}, 50.},
		{"the new one alone", nvml.SUCCESS, []string{"nvmlDeviceGetTemperature"}, 41.},
		{"the old one deprecated", nvml.ERROR_DEPRECATED, nil, 41.},
		{"the old one not supported", nvml.ERROR_NOT_SUPPORTED, nil, 41.},
		{"the old one fails", nvml.ERROR_UNKNOWN, nil, faults[nvml.ERROR_UNKNOWN]},
		{"the old one is not supported, and there is no new one", nvml.ERROR_NOT_SUPPORTED, []string{"nvmlDeviceGetTemperatureV"}, metric.Unsupported},
		{"neither", nvml.SUCCESS, []string{"nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV"}, metric.Unsupported},
	} {
		d := answering("GPU-0")
		d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 50, c.ret }
		l := newFakeLibrary(d)
		l.missing = c.missing
		n := started(t, l)
		h := n.list()[0]
		for range 2 {
			v := n.read(h).Thermal.Temperature[telemetry.TemperatureSensorCore]
			switch w := c.want.(type) {
			case float64:
				want(t, c.name, v, w)
			case *metric.Reason:
				want(t, c.name, v, w)
			}
		}
	}
}

// Limits are temperatures, or offsets on boards of that sort, and never mixed.
func TestTemperatureLimits(t *testing.T) {
	minus := func(n int32) nvml.FieldValue { return valued(nvml.VALUE_TYPE_SIGNED_INT, uint64(uint32(-n))) }
	d := answering("GPU-0")
	d.GetTemperatureThresholdFunc = func(limit nvml.TemperatureThresholds) (uint32, nvml.Return) {
		return map[nvml.TemperatureThresholds]uint32{
			nvml.TEMPERATURE_THRESHOLD_SHUTDOWN: 92, nvml.TEMPERATURE_THRESHOLD_SLOWDOWN: 89, nvml.TEMPERATURE_THRESHOLD_MEM_MAX: 95, nvml.TEMPERATURE_THRESHOLD_GPU_MAX: 87,
		}[limit], nvml.SUCCESS
	}
	d.fields(map[uint32]nvml.FieldValue{
		82: valued(u32, 61), 193: failing(nvml.ERROR_NOT_SUPPORTED), 194: failing(nvml.ERROR_NOT_SUPPORTED),
		195: failing(nvml.ERROR_NOT_SUPPORTED), 196: failing(nvml.ERROR_NOT_SUPPORTED),
	})
	out, _ := readOnce(t, newFakeLibrary(d))
	x := out.Thermal
	const shutdown, slowdown, memory, core = telemetry.TemperatureLimitTypeShutdown, telemetry.TemperatureLimitTypeSlowdown,
		telemetry.TemperatureLimitTypeMemoryMax, telemetry.TemperatureLimitTypeCoreMax
	want(t, "memory", x.Temperature[telemetry.TemperatureSensorMemory], 61.)
	for limit, n := range map[telemetry.TemperatureLimitType]float64{shutdown: 92, slowdown: 89, memory: 95, core: 87} {
		want(t, limit.String(), x.TemperatureLimit[limit], n)
		want(t, "offset of "+limit.String(), x.TemperatureMarginLimit[limit], metric.Unsupported)
	}

	d.GetTemperatureThresholdFunc = func(nvml.TemperatureThresholds) (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	d.fields(map[uint32]nvml.FieldValue{82: failing(nvml.ERROR_NOT_SUPPORTED), 193: minus(8), 194: minus(2), 195: minus(0), 196: valued(u32, 300)})
	out, _ = readOnce(t, newFakeLibrary(d))
	x = out.Thermal
	want(t, "memory of a board without a sensor", x.Temperature[telemetry.TemperatureSensorMemory], metric.Unsupported)
	for limit, n := range map[telemetry.TemperatureLimitType]float64{shutdown: -8, slowdown: -2, memory: 0} {
		want(t, limit.String(), x.TemperatureLimit[limit], metric.Unsupported)
		want(t, "offset of "+limit.String(), x.TemperatureMarginLimit[limit], n)
	}
	want(t, "an offset of 300", x.TemperatureMarginLimit[core], metric.Implausible)

	l := newFakeLibrary(d)
	l.driver = "530.41.03"
	out, _ = readOnce(t, l)
	want(t, "offset, before R535", out.Thermal.TemperatureMarginLimit[shutdown], metric.Unsupported)
}
