package sim

import (
	"math"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// utilization tells how busy the board is, if it is not split: nobody tells it of partitions.
func (d *device) utilization(out *telemetry.Utilization) {
	busy, whole := float64(d.physics.now.busy), len(d.partitions) == 0
	tell(&out.Utilization, whole, busy*percent)
	tell(&out.BusyTime, whole, d.physics.busySeconds())
	// Matrix products keep the memory busy for less than half of the time.
	tell(&out.MemoryControllerUtilization, d.board.bus && whole, math.Floor(busy*0.42)*percent)
	for i, has := range d.board.engines {
		share := 0.0 // no job here computes optical flow
		switch {
		case i == int(telemetry.MediaEngineDecoder) && d.physics.plan.serving:
			share = math.Floor(busy * 0.2) // requests come with pictures
		case i == int(telemetry.MediaEngineEncoder) && d.filmsMade() > 0:
			share = math.Floor(busy * 0.6) // and some are answered with them
		}
		tell(&out.MediaUtilization[i], has && whole, share*percent)
	}
}
