//go:build cgo

package nvml

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func power(p *pass, out *telemetry.Power) {
	read(p, &out.Draw, askPower, 0, watts, scalePowerDraw, p.dev.GetPowerUsage)
	energy(p, &out.Energy)
	if p.h.reader.chosen.metrics["gpu.power.peak"] {
		p.h.peak.read(p, &out.Peak)
	}
}

// meter is who counts a device's energy. It is settled once: the one count and the other have other
// beginnings, and in turn they would look like all of it over again.
type meter uint8

const (
	noMeter   meter = iota
	ofBoard         // its own count, since the driver was loaded
	ofSamples       // what its power samples add up to, since the exporter started
)

// energy reads the device's own count, or what its power samples add up to where it keeps none.
func energy(p *pass, v *metric.Value) {
	known := p.h.history
	if known.meter != ofSamples {
		n, why := call(p, askEnergy, 0, p.dev.GetTotalEnergyConsumption)
		put(v, why, joules, scalePowerEnergy, n)
		p.h.energy.check(v)
		if why == nil {
			known.meter = ofBoard
		}
		if why != metric.Unsupported || known.meter == ofBoard || p.h.peak.seen == 0 {
			return
		}
		known.meter = ofSamples
	}
	switch why := p.h.peak.why; {
	case p.down != nil:
	case why != nil && (why.Fault || why == metric.Unsupported):
		v.Fail(why)
	default:
		v.Set(known.joules)
	}
}
