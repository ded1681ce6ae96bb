//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// thresholds are the driver's names of the limits, in the order of the spec.
var thresholds = [...]nvml.TemperatureThresholds{
	telemetry.TemperatureLimitTypeShutdown:  nvml.TEMPERATURE_THRESHOLD_SHUTDOWN,
	telemetry.TemperatureLimitTypeSlowdown:  nvml.TEMPERATURE_THRESHOLD_SLOWDOWN,
	telemetry.TemperatureLimitTypeMemoryMax: nvml.TEMPERATURE_THRESHOLD_MEM_MAX,
	telemetry.TemperatureLimitTypeCoreMax:   nvml.TEMPERATURE_THRESHOLD_GPU_MAX,
}

// thermal reads the chip's temperatures; the memory's is a field. The call for the chip's is
// deprecated from R570 on in favour of one that younger drivers alone have.
func thermal(p *pass, out *telemetry.Thermal) {
	dev := p.dev
	core := &out.Temperature[telemetry.TemperatureSensorCore]
	read(p, core, askTemperature, 0, celsius, whole, func() (uint32, nvml.Return) { return dev.GetTemperature(nvml.TEMPERATURE_GPU) })
	if core.Why() == metric.Unsupported {
		read(p, core, askTemperatureV, 0, celsius, whole, func() (int32, nvml.Return) {
			t, ret := dev.TemperatureV1()
			return t.Temperature, ret
		})
	}
	for limit, threshold := range thresholds {
		readFixed(p, &out.TemperatureLimit[limit], &p.h.fixed.temperatures[limit], askThreshold, limit, celsius, whole, func() (uint32, nvml.Return) {
			return dev.GetTemperatureThreshold(threshold)
		})
	}
	read(p, &out.TemperatureMargin, askMargin, 0, celsius, whole, func() (int32, nvml.Return) {
		m, ret := dev.GetMarginTemperature()
		return m.MarginTemperature, ret
	})
}
