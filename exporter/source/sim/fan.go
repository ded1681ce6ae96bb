package sim

import (
	"math"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// What fans do: they stand still while the chip is cool, as an RTX 4080 SUPER's did at 46 degrees,
// and are at their fastest a few degrees before the driver slows the clocks.
const (
	fansStart   = 50.0 // Celsius
	slowestFan  = 0.3  // of the fastest
	fanReserve  = 5.0  // degrees
	fastestTurn = 50.0 // a second
)

// fanSpeed is the share of its fastest that a fan is told to run at, in whole percent.
func (h *heat) fanSpeed(core float64) float64 {
	if core < fansStart {
		return 0
	}
	warm := (core - fansStart) / (float64(h.coreMax) - fanReserve - fansStart)
	return math.Floor(100*min(1, slowestFan+(1-slowestFan)*warm)) * percent
}

// fan tells of the fans, in a slice of its own. All run alike, and the driver tells the turns of the
// first alone.
func (d *device) fan(out *telemetry.Fan) {
	out.Speed, out.RotationFrequency = nil, nil
	n := len(d.about.fans)
	if n == 0 {
		return
	}
	share := d.board.heat.fanSpeed(math.Floor(d.physics.now.core))
	all := make([]metric.Keyed, n+1)
	for i, labels := range d.about.fans {
		all[i].Labels = labels
		all[i].Value.Set(share)
	}
	all[n].Labels = d.about.fans[0]
	all[n].Value.Set(share * fastestTurn)
	out.Speed, out.RotationFrequency = all[:n:n], all[n:]
}
