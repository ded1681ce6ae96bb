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

// thermal reads the chip's temperatures; the memory's is a field.
func thermal(p *pass, out *telemetry.Thermal) {
	dev := p.h.dev
	core := &out.Temperature[telemetry.TemperatureSensorCore]
	if p.h.has.temperature {
		read(p, core, celsius, whole, func() (uint32, nvml.Return) { return dev.GetTemperature(nvml.TEMPERATURE_GPU) })
	} else {
		core.Fail(metric.Unsupported)
	}
	for limit, threshold := range thresholds {
		read(p, &out.TemperatureLimit[limit], celsius, whole, func() (uint32, nvml.Return) {
			return dev.GetTemperatureThreshold(threshold)
		})
	}
	if !p.h.has.margin {
		out.TemperatureMargin.Fail(metric.Unsupported)
		return
	}
	read(p, &out.TemperatureMargin, celsius, whole, func() (int32, nvml.Return) {
		m, ret := dev.GetMarginTemperature()
		return m.MarginTemperature, ret
	})
}
