package sim

import (
	"math"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// thermal tells whole degrees, as drivers do, so that what is told adds up.
func (d *device) thermal(out *telemetry.Thermal) {
	h, core := &d.board.heat, math.Floor(d.physics.now.core)
	out.Temperature[telemetry.TemperatureSensorCore].Set(core)
	tell(&out.Temperature[telemetry.TemperatureSensorMemory], h.fullMemory != 0, math.Floor(d.physics.now.memory))
	out.Temperature[telemetry.TemperatureSensorHotspot].Fail(metric.Unsupported) // the chip's is its hottest place's here
	tell(&out.TemperatureMargin, d.board.margin, float64(h.slowdown)-core)
	for i, celsius := range d.board.told {
		tell(&out.TemperatureLimit[i], celsius != 0, float64(celsius))
	}
}
