//go:build cgo

package nvml

import "github.com/gpumeter/gpumeter/exporter/telemetry"

func power(p *pass, out *telemetry.Power) {
	read(p, &out.Draw, watts, milli, p.h.dev.GetPowerUsage)
	read(p, &out.Energy, joules, milli, p.h.dev.GetTotalEnergyConsumption)
}
