package sim

import (
	"math"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// thermal tells whole degrees, as drivers do, so that what is told adds up. The limit of memory is
// an offset to a margin of its own, which is not told.
func (d *device) thermal(out *telemetry.Thermal) {
	h, core := &d.board.heat, math.Floor(d.physics.now.core)
	out.Temperature[telemetry.TemperatureSensorCore].Set(core)
	tell(&out.Temperature[telemetry.TemperatureSensorMemory], h.fullMemory != 0, math.Floor(d.physics.now.memory))
	out.Temperature[telemetry.TemperatureSensorHotspot].Fail(metric.Unsupported) // the chip's is its hottest place's here
	tell(&out.TemperatureMargin, d.board.margin, float64(h.coreMax)-core)
	for i, celsius := range d.board.told {
		tell(&out.TemperatureLimit[i], celsius != 0, float64(celsius))
	}
	for i, celsius := range [...]int64{
		telemetry.TemperatureLimitTypeShutdown: h.shutdown, telemetry.TemperatureLimitTypeSlowdown: h.slowdown,
		telemetry.TemperatureLimitTypeMemoryMax: h.coreMax, telemetry.TemperatureLimitTypeCoreMax: h.coreMax,
	} {
		has := d.board.margin && (h.fullMemory != 0 || i != int(telemetry.TemperatureLimitTypeMemoryMax))
		tell(&out.TemperatureMarginLimit[i], has, float64(h.coreMax-celsius))
	}
}
