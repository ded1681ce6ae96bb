//go:build cgo

package nvml

import (
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// fans are those of one device.
type fans struct{ labels []*metric.Labels }

// mostTurns a minute is far above what any fan does.
const mostTurns = 100_000

// mostFans is far above what any board has.
const mostFans = 16

func (f *fans) read(p *pass, out *telemetry.Fan) {
	dev := p.dev
	n, why := call(p, askFans, 0, dev.GetNumFans)
	if why != nil || n <= 0 || n > mostFans {
		return
	}
	for len(f.labels) < n {
		f.labels = append(f.labels, telemetry.FanSpeedAttributes{Fan: int64(len(f.labels))}.Labels())
	}
	out.Speed = slices.Grow(out.Speed[:0], n)[:n]
	for i := range n {
		out.Speed[i] = metric.Keyed{Labels: f.labels[i]}
		share, why := call(p, askFan, i, func() (uint32, nvml.Return) { return dev.GetFanSpeed_v2(i) })
		if why == nil && share > 200 { // more than 100 is allowed, for a while
			why = metric.Implausible
		}
		keep(&out.Speed[i].Value, why, float64(share)*scaleFanSpeed)
	}
	rpm, why := call(p, askFanRPM, 0, dev.GetFanSpeedRPM)
	if why == nil && rpm.Speed > mostTurns {
		why = metric.Implausible
	}
	if why == nil || why.Fault {
		out.RotationFrequency = append(out.RotationFrequency[:0], metric.Keyed{Labels: f.labels[0]})
		put(&out.RotationFrequency[0].Value, why, hertz, 1./60, rpm.Speed)
	}
}
