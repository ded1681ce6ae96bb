//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func encoder(p *pass, out *telemetry.Encoder) {
	dev := p.dev
	s, why := call(p, askEncoderStats, 0, func() (nvml.FBCStats, nvml.Return) {
		sessions, rate, latency, ret := dev.GetEncoderStats()
		return nvml.FBCStats{SessionsCount: uint32(sessions), AverageFPS: rate, AverageLatency: latency}, ret
	})
	sessions(&out.Sessions, &out.FrameRate, &out.Latency, scaleEncoderLatency, s, why)
	if !p.h.reader.chosen.metrics["gpu.capture.sessions"] {
		return
	}
	s, why = call(p, askCaptureStats, 0, dev.GetFBCStats)
	sessions(&out.CaptureSessions, &out.CaptureFrameRate, &out.CaptureLatency, scaleEncoderCaptureLatency, s, why)
}

// mostFrames is far above what any encoder does in a second.
const mostFrames = 1e6

// sessions keeps the averages only where there is something to average.
func sessions(count, rate, latency *metric.Value, latencyScale float64, s nvml.FBCStats, why *metric.Reason) {
	put(count, why, "{session}", whole, s.SessionsCount)
	if why == nil && s.SessionsCount == 0 {
		why = metric.NoData
	}
	if why == nil && s.AverageFPS > mostFrames {
		why = metric.Implausible
	}
	put(rate, why, hertz, whole, s.AverageFPS)
	put(latency, why, seconds, latencyScale, s.AverageLatency)
}
