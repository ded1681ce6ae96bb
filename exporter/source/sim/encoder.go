package sim

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// What an encoder does in all, as was seen of an L40S that ffmpeg ran on.
const (
	framesPerSecond = 240
	busyPerSession  = 25 // percent of business that the requests of one film make
)

// filmsMade is how many films are encoded now. Boards made to compute have no encoder.
func (d *device) filmsMade() int64 {
	busy := d.physics.now.busy
	if !d.physics.plan.serving || busy == 0 || !d.board.media && !d.board.consumer {
		return 0
	}
	return 1 + busy/busyPerSession
}

// encoder tells of the sessions, which share the encoder. Nobody captures a screen.
func (d *device) encoder(out *telemetry.Encoder) {
	ours, n := d.board.vendor == nvidia, float64(d.filmsMade())
	tell(&out.Sessions, ours, n)
	tell(&out.CaptureSessions, ours, 0)
	rate, latency := &out.FrameRate, &out.Latency
	switch {
	case !ours:
		rate.Fail(metric.Unsupported)
		latency.Fail(metric.Unsupported)
	case n == 0:
		rate.Fail(metric.NoData)
		latency.Fail(metric.NoData)
	default:
		rate.Set(framesPerSecond / n)
		latency.Set(n / framesPerSecond)
	}
}
