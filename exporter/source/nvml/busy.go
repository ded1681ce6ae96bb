//go:build cgo

package nvml

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// The driver keeps about a hundred samples, one every 1/6 to 1 second, so looking this often
// misses none.
const samplePeriod = 5 * time.Second

// maxSpan is the longest time one sample speaks for: twice the longest period. What is longer is a
// hole (the device slept, or the driver hung past its buffer), and nothing is known of it but at
// its end: it is left out of the count, so that rate() can be too low for once but never invented.
const maxSpan = 2 * time.Second

// busy integrates the driver's utilization samples.
type busy struct {
	seen uint64 // timestamp of the newest sample taken in, µs of the driver's clock; 0: none
}

// add returns the busy seconds that a batch adds, and whether it had nothing but impossible
// values. The first batch ever only says where counting begins.
func (b *busy) add(kind nvml.ValueType, samples []nvml.Sample) (busySeconds float64, allBad bool) {
	first := b.seen == 0
	good, bad := 0, 0
	for _, s := range samples {
		if s.TimeStamp <= b.seen { // also the zeros go-nvml leaves where the driver gave fewer than it announced
			continue
		}
		span := time.Duration(s.TimeStamp-b.seen) * time.Microsecond
		b.seen = s.TimeStamp
		load, ok := raw{uint32(kind), s.SampleValue}.number()
		load *= scaleUtilizationBusyTime
		if !ok || !plausible(ratio, load) {
			bad++
			continue
		}
		good++
		if !first && span <= maxSpan {
			busySeconds += load * span.Seconds()
		}
	}
	return busySeconds, bad > 0 && good == 0
}

// samples are what the driver has kept of one sort since a moment.
type samples struct {
	kind nvml.ValueType
	list []nvml.Sample
}

// draw asks for the samples after a timestamp of the driver's clock.
func draw(p *pass, variant int, of nvml.SamplingType, after uint64) (samples, *metric.Reason) {
	return call(p, askSamples, variant, func() (samples, nvml.Return) {
		kind, list, ret := p.dev.GetSamples(of, after)
		if ret == nvml.ERROR_NOT_FOUND || ret == nvml.ERROR_INSUFFICIENT_SIZE { // nothing new, or the buffer grew between two looks
			ret = nvml.ERROR_NO_DATA
		}
		return samples{kind, list}, ret
	})
}

// drain takes in what the driver has sampled since the last time, and returns why there was nothing.
func (h *handle) drain(p *pass) *metric.Reason {
	got, why := draw(p, 0, nvml.GPU_UTILIZATION_SAMPLES, h.busy.seen)
	if why != nil {
		return why
	}
	more, allBad := h.busy.add(got.kind, got.list)
	h.history.busy += more
	if allBad {
		return metric.Implausible
	}
	return nil
}

// busyTime serves the count, as long as the driver samples at all.
func busyTime(p *pass, v *metric.Value) {
	if p.down != nil {
		return
	}
	switch why := p.h.drain(p); {
	case p.down != nil:
	case why == nil || why == metric.NoData && p.h.busy.seen != 0:
		v.Set(p.h.history.busy)
	default:
		v.Fail(why)
	}
}
