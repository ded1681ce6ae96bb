//go:build cgo

package nvml

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// peakWindow is how far back the highest power is looked for, as the spec says.
const peakWindow = time.Minute

// peak keeps the highest of the driver's power samples, and integrates them.
type peak struct {
	seen  uint64 // timestamp of the newest sample taken in, µs of the driver's clock; 0: none
	highs [peakWindow/samplePeriod + 1]high
	next  int
	why   *metric.Reason // the last look gave no sample
}

// high is the highest sample of one look.
type high struct {
	at    time.Time
	watts float64
}

// sample takes in what the driver has sampled since the last look.
func (k *peak) sample(p *pass) {
	got, why := draw(p, 1, nvml.TOTAL_POWER_SAMPLES, k.seen)
	if k.why = why; why != nil {
		return
	}
	top, good := 0., false
	first, newest := k.seen == 0, uint64(0)
	for _, s := range got.list {
		newest = max(newest, s.TimeStamp)
	}
	for _, s := range got.list {
		if s.TimeStamp <= k.seen { // also the zeros go-nvml leaves where the driver gave fewer than it announced
			continue
		}
		span := time.Duration(s.TimeStamp-k.seen) * time.Microsecond
		k.seen = s.TimeStamp
		n, ok := raw{uint32(got.kind), s.SampleValue}.number()
		if n *= scalePowerPeak; !ok || !plausible(watts, n) {
			k.why = metric.Implausible
			continue
		}
		good = true
		if time.Duration(newest-s.TimeStamp)*time.Microsecond <= peakWindow { // the driver may have kept more
			top = max(top, n)
		}
		if !first && span <= maxSpan {
			p.h.history.joules += n * span.Seconds()
		}
	}
	if good {
		k.why = nil
		k.highs[k.next] = high{p.h.reader.now(), top}
		k.next = (k.next + 1) % len(k.highs)
	}
}

// read serves the highest of the window. A device that is not sampled any more has none.
func (k *peak) read(p *pass, v *metric.Value) {
	if p.down != nil {
		return
	}
	now, top, found := p.h.reader.now(), 0., false
	for _, h := range k.highs {
		if !h.at.IsZero() && now.Sub(h.at) <= peakWindow {
			top, found = max(top, h.watts), true
		}
	}
	switch {
	case found:
		v.Set(top)
	case k.why != nil:
		v.Fail(k.why)
	default:
		v.Fail(metric.NoData)
	}
}
