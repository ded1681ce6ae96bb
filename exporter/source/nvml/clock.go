//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// clocks are the driver's names of the clocks, in the order of the spec.
var clocks = [...]nvml.ClockType{
	telemetry.ClockTypeGraphics: nvml.CLOCK_GRAPHICS,
	telemetry.ClockTypeSM:       nvml.CLOCK_SM,
	telemetry.ClockTypeMemory:   nvml.CLOCK_MEM,
	telemetry.ClockTypeVideo:    nvml.CLOCK_VIDEO,
}

func clock(p *pass, out *telemetry.Clock) {
	dev := p.dev
	for i, c := range clocks {
		read(p, &out.Frequency[i], askClock, i, hertz, scaleClockFrequency, func() (uint32, nvml.Return) { return dev.GetClockInfo(c) })
		readFixed(p, &out.Limit[i], &p.h.fixed.clocks[i], askMaxClock, i, hertz, scaleClockLimit, func() (uint32, nvml.Return) { return dev.GetMaxClockInfo(c) })
	}
	if !p.h.reader.chosen.metrics["gpu.clock.application"] {
		return
	}
	for _, i := range []telemetry.ClockType{telemetry.ClockTypeGraphics, telemetry.ClockTypeMemory} { // it is set for no other
		read(p, &out.Application[i], askApplicationsClock, int(i), hertz, scaleClockApplication, func() (uint32, nvml.Return) {
			return dev.GetApplicationsClock(clocks[i])
		})
	}
}
