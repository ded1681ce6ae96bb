//go:build cgo

package nvml

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func power(p *pass, out *telemetry.Power) {
	read(p, &out.Draw, askPower, 0, watts, milli, p.dev.GetPowerUsage)
	energy(p, &out.Energy)
	if p.h.reader.chosen.metrics["gpu.power.peak"] {
		p.h.peak.read(p, &out.Peak)
	}
}

// energy reads the device's own count, or what its power samples add up to where it keeps none.
func energy(p *pass, v *metric.Value) {
	n, why := call(p, askEnergy, 0, p.dev.GetTotalEnergyConsumption)
	if why == metric.Unsupported && p.h.peak.seen != 0 {
		v.Set(p.h.history.joules)
		return
	}
	put(v, why, joules, milli, n)
	p.h.energy.check(v)
}
