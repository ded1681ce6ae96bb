package sim

import (
	"math"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func (d *device) utilization(out *telemetry.Utilization) {
	busy := float64(d.physics.now.busy)
	out.Utilization.Set(busy * percent)
	out.BusyTime.Set(d.physics.busySeconds())
	// Matrix products keep the memory busy for less than half of the time.
	tell(&out.MemoryControllerUtilization, d.board.bus, math.Floor(busy*0.42)*percent)
	for i, has := range d.board.engines {
		share := 0.0 // no job here computes optical flow
		switch {
		case i == int(telemetry.MediaEngineDecoder) && d.physics.plan.serving:
			share = math.Floor(busy * 0.2) // requests come with pictures
		case i == int(telemetry.MediaEngineEncoder) && d.filmsMade() > 0:
			share = math.Floor(busy * 0.6) // and some are answered with them
		}
		tell(&out.MediaUtilization[i], has, share*percent)
	}
}
