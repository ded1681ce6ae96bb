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
		load, ok := union(s.SampleValue).decode(kind)
		load *= percent
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

// drain takes in what the driver has sampled since the last time.
func (h *handle) drain() (why *metric.Reason, whole bool) {
	kind, samples, ret := h.dev.GetSamples(nvml.GPU_UTILIZATION_SAMPLES, h.busy.seen)
	switch ret {
	case nvml.SUCCESS:
		more, allBad := h.busy.add(kind, samples)
		h.history.busy += more
		if allBad {
			return metric.Implausible, false
		}
		return nil, false
	case nvml.ERROR_NOT_FOUND, nvml.ERROR_INSUFFICIENT_SIZE: // nothing new, or the buffer grew between two looks
		return metric.NoData, false
	}
	return reason(ret)
}

// busyTime serves the count, as long as the driver samples at all.
func busyTime(p *pass, v *metric.Value) {
	if p.down != nil {
		return
	}
	why, whole := p.h.drain()
	switch {
	case whole:
		p.down = why
	case why == nil || why == metric.NoData && p.h.busy.seen != 0:
		v.Set(p.h.history.busy)
	default:
		v.Fail(why)
	}
}
