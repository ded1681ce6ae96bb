//go:build cgo

package nvml

import (
	"errors"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// staleAfter is how long the last window is served: a device that is not sampled any more must
// not look as it did.
const staleAfter = 3 * samplePeriod

// shortest is the least time between two samples, below which the driver gives no average.
const shortest = 100 * time.Millisecond

// gpmMetric is one share that the driver reports in percent: its ID, and where it goes, each with the
// factor of the spec.
type gpmMetric struct {
	id          nvml.GpmMetricId
	windowScale float64
	window      func(*telemetry.Profiling) *metric.Value
	timeScale   float64
	time        func(*telemetry.Profiling) *metric.Value // nil: seconds of it mean nothing
}

// gpmMetrics are the shares that are read.
var gpmMetrics = [...]gpmMetric{
	{
		nvml.GPM_METRIC_GRAPHICS_UTIL,
		scaleProfilingGrEngineActive, func(t *telemetry.Profiling) *metric.Value { return &t.GrEngineActive },
		scaleProfilingGrEngineActiveTime, func(t *telemetry.Profiling) *metric.Value { return &t.GrEngineActiveTime },
	},
	{
		nvml.GPM_METRIC_SM_UTIL,
		scaleProfilingSMActive, func(t *telemetry.Profiling) *metric.Value { return &t.SMActive },
		scaleProfilingSMActiveTime, func(t *telemetry.Profiling) *metric.Value { return &t.SMActiveTime },
	},
	{
		id:          nvml.GPM_METRIC_SM_OCCUPANCY,
		windowScale: scaleProfilingSMOccupancy, window: func(t *telemetry.Profiling) *metric.Value { return &t.SMOccupancy },
	},
	{
		nvml.GPM_METRIC_DRAM_BW_UTIL,
		scaleProfilingDramActive, func(t *telemetry.Profiling) *metric.Value { return &t.DramActive },
		scaleProfilingDramActiveTime, func(t *telemetry.Profiling) *metric.Value { return &t.DramActiveTime },
	},
	pipe(nvml.GPM_METRIC_ANY_TENSOR_UTIL, telemetry.PipeTensor),
	pipe(nvml.GPM_METRIC_FP64_UTIL, telemetry.PipeFp64),
	pipe(nvml.GPM_METRIC_FP32_UTIL, telemetry.PipeFp32),
	pipe(nvml.GPM_METRIC_FP16_UTIL, telemetry.PipeFp16),
	pipe(nvml.GPM_METRIC_INTEGER_UTIL, telemetry.PipeInteger),
}

func pipe(id nvml.GpmMetricId, part telemetry.Pipe) gpmMetric {
	return gpmMetric{
		id,
		scaleProfilingPipeActive, func(t *telemetry.Profiling) *metric.Value { return &t.PipeActive[part] },
		scaleProfilingPipeActiveTime, func(t *telemetry.Profiling) *metric.Value { return &t.PipeActiveTime[part] },
	}
}

// activity is the seconds of each share since the exporter started; it outlives the library being
// closed and opened again.
type activity [len(gpmMetrics)]float64

// profiler keeps the driver's counters of a device, or of one of its GPU instances, at the last
// look, and the averages since the look before.
type profiler struct {
	lib          library // nil: nothing is held
	before, next nvml.GpmSample
	taken        time.Time // when before was; zero: it holds nothing
	at           time.Time // when the averages were made
	shares       [len(gpmMetrics)]metric.Value
	seconds      *activity
	why          *metric.Reason // there are no averages
}

var errNoSample = errors.New("nvml: no memory for a sample")

// sample looks at the device as a whole.
func (g *profiler) sample(p *pass) {
	if p.down != nil {
		g.lose(metric.NoData)
		return
	}
	_, why := call(p, askGPM, 0, func() (struct{}, nvml.Return) {
		support, ret := p.dev.GpmSupportV1()
		if ret == nvml.SUCCESS && support.IsSupportedDevice == 0 {
			ret = nvml.ERROR_NOT_SUPPORTED
		}
		return struct{}{}, ret
	})
	if why != nil {
		g.lose(why)
		return
	}
	g.look(p, p.h.history.activity(""), func(s nvml.GpmSample) *metric.Reason {
		_, why := call(p, askGPM, 1, func() (struct{}, nvml.Return) { return struct{}{}, p.dev.GpmSampleGet(s) })
		return why
	})
}

// look takes a sample and averages over the time since the last one.
func (g *profiler) look(p *pass, seconds *activity, take func(nvml.GpmSample) *metric.Reason) {
	if err := g.hold(p.h.reader.lib); err != nil {
		g.lose(metric.Failed)
		return
	}
	now := p.h.reader.now()
	if !g.taken.IsZero() && now.Sub(g.taken) < shortest {
		return
	}
	if why := take(g.next); why != nil {
		g.lose(why)
		return
	}
	g.why = nil
	if !g.taken.IsZero() {
		g.average(p, seconds, now)
	}
	g.before, g.next, g.taken = g.next, g.before, now
}

// lose begins anew when a look failed: an average over a hole would say nothing of it.
func (g *profiler) lose(why *metric.Reason) { g.why, g.taken, g.at = why, time.Time{}, time.Time{} }

// average asks what happened between the two samples.
func (g *profiler) average(p *pass, seconds *activity, now time.Time) {
	ask := nvml.GpmMetricsGetType{NumMetrics: uint32(len(gpmMetrics)), Sample1: g.before, Sample2: g.next}
	for i, m := range gpmMetrics {
		ask.Metrics[i].MetricId = uint32(m.id)
		ask.Metrics[i].NvmlReturn = uint32(nvml.ERROR_NO_DATA)
	}
	if ret := p.h.reader.lib.GpmMetricsGet(&ask); ret != nvml.SUCCESS {
		g.why, _ = reason(ret)
		return
	}
	g.at, g.seconds = now, seconds
	window := now.Sub(g.taken).Seconds()
	for i, m := range gpmMetrics {
		why, _ := reason(nvml.Return(ask.Metrics[i].NvmlReturn))
		share := ask.Metrics[i].Value * m.windowScale
		if why == nil && !plausible(ratio, share) {
			why = metric.Implausible
		}
		g.shares[i] = metric.Value{}
		keep(&g.shares[i], why, share)
		if why == nil {
			seconds[i] += ask.Metrics[i].Value * m.timeScale * window
		}
	}
}

// read serves the averages of the last window.
func (g *profiler) read(p *pass, out *telemetry.Profiling) {
	if p.down != nil {
		return
	}
	why := g.why
	if why == nil && (g.at.IsZero() || p.h.reader.now().Sub(g.at) > staleAfter) {
		why = metric.NoData
	}
	for i, m := range gpmMetrics {
		if why != nil {
			m.window(out).Fail(why)
		} else {
			*m.window(out) = g.shares[i]
		}
		if m.time == nil {
			continue
		}
		switch share := g.shares[i].Why(); {
		case why == metric.Unsupported, share == metric.Unsupported:
			m.time(out).Fail(metric.Unsupported)
		case g.seconds == nil:
			m.time(out).Fail(why)
		case share == metric.Unread && g.seconds[i] == 0: // the driver has not said whether it has it
			m.time(out).Fail(metric.NoData)
		default: // a count does not go because the driver pauses
			m.time(out).Set(g.seconds[i])
		}
	}
}

// hold makes room for two samples.
func (g *profiler) hold(lib library) error {
	for _, s := range []*nvml.GpmSample{&g.before, &g.next} {
		if *s != nil {
			continue
		}
		sample, ret := lib.GpmSampleAlloc()
		if ret != nvml.SUCCESS {
			return errNoSample
		}
		*s, g.lib = sample, lib
	}
	return nil
}

// pause gives the samples back and keeps the averages, which are served until they are stale.
func (g *profiler) pause() {
	for _, s := range []nvml.GpmSample{g.before, g.next} {
		if s != nil {
			_ = s.Free() // there is nothing to be done about it
		}
	}
	g.lib, g.before, g.next, g.taken = nil, nil, nil, time.Time{}
}

// free gives the samples back, which must be before the library is closed, and forgets the averages.
func (g *profiler) free() {
	g.pause()
	*g = profiler{seconds: g.seconds}
}
