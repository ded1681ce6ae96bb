//go:build cgo

package nvml

import (
	"math"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// averaging makes the driver answer with these percentages.
func averaging(l *fakeLibrary, percent map[nvml.GpmMetricId]float64, fails map[nvml.GpmMetricId]nvml.Return) {
	l.gpm = func(ask *nvml.GpmMetricsGetType) nvml.Return {
		for i := range ask.Metrics[:ask.NumMetrics] {
			m := &ask.Metrics[i]
			id := nvml.GpmMetricId(m.MetricId)
			m.Value, m.NvmlReturn = percent[id], uint32(fails[id])
		}
		return nvml.SUCCESS
	}
}

// profiled is one device whose profile is looked at as a test says.
type profiled struct {
	*node
	h *handle
	l *fakeLibrary
}

func profiling(t *testing.T, d *fakeDevice) profiled {
	t.Helper()
	l := newFakeLibrary(d)
	n := started(t, l)
	return profiled{n, n.list()[0], l}
}

// look goes on by a time and looks.
func (p profiled) look(after time.Duration) {
	p.turn(after)
	p.h.Sample(p.Context())
}

func (p profiled) profile() telemetry.Profiling {
	p.Helper()
	return p.read(p.h).Profiling
}

// near checks seconds that were added up.
func (p profiled) near(what string, v metric.Value, want float64) {
	p.Helper()
	if n, ok := v.Get(); !ok || math.Abs(n-want) > 1e-9 {
		p.Errorf("%s = %v (%v), want %v", what, n, v.Why(), want)
	}
}

// Each share is the driver's own id, in percent, and its seconds are what it adds up to.
func TestProfile(t *testing.T) {
	p := profiling(t, answering("GPU-0"))
	ids := map[nvml.GpmMetricId]func(*telemetry.Profiling) (window, count metric.Value){
		1: func(t *telemetry.Profiling) (metric.Value, metric.Value) {
			return t.GrEngineActive, t.GrEngineActiveTime
		},
		2:  func(t *telemetry.Profiling) (metric.Value, metric.Value) { return t.SMActive, t.SMActiveTime },
		3:  func(t *telemetry.Profiling) (metric.Value, metric.Value) { return t.SMOccupancy, metric.Value{} },
		10: func(t *telemetry.Profiling) (metric.Value, metric.Value) { return t.DramActive, t.DramActiveTime },
	}
	for id, pipe := range map[nvml.GpmMetricId]telemetry.Pipe{
		4: telemetry.PipeInteger, 5: telemetry.PipeTensor, 11: telemetry.PipeFp64, 12: telemetry.PipeFp32, 13: telemetry.PipeFp16,
	} {
		ids[id] = func(t *telemetry.Profiling) (metric.Value, metric.Value) {
			return t.PipeActive[pipe], t.PipeActiveTime[pipe]
		}
	}
	percent := map[nvml.GpmMetricId]float64{}
	for id := range ids {
		percent[id] = 3 * float64(id)
	}
	averaging(p.l, percent, nil)
	out := p.profile()
	want(t, "before the first look", out.SMActive, metric.NoData)
	want(t, "its time", out.SMActiveTime, metric.NoData)
	p.look(0)
	want(t, "of one look", p.profile().SMActive, metric.NoData)
	p.look(5 * time.Second)
	p.look(3 * time.Second)
	out = p.profile()
	for id, of := range ids {
		window, count := of(&out)
		want(t, "window", window, percent[id]/100)
		if id == 3 {
			continue
		}
		p.near("time", count, 8*percent[id]/100)
	}
}

// The driver averages over no less than 100 ms, so a look too soon is none.
func TestProfileTooSoon(t *testing.T) {
	d := answering("GPU-0")
	p := profiling(t, d)
	averaging(p.l, map[nvml.GpmMetricId]float64{2: 50}, nil)
	p.look(0)
	p.look(50 * time.Millisecond)
	want(t, "after 50 ms", p.profile().SMActive, metric.NoData)
	p.look(2 * time.Second)
	out := p.profile()
	want(t, "window", out.SMActive, 0.5)
	p.near("time, with that of the look too soon", out.SMActiveTime, 0.5*2.05)
}

// An average over a time in which the device did not answer would say nothing of it.
func TestProfileHoles(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(*fakeDevice, *fakeLibrary, nvml.Return)
		why    *metric.Reason
	}{
		"no sample": {func(d *fakeDevice, _ *fakeLibrary, ret nvml.Return) {
			d.GpmSampleGetFunc = func(nvml.GpmSample) nvml.Return { return ret }
		}, faults[nvml.ERROR_TIMEOUT]},
		"no word on whether it can": {func(d *fakeDevice, _ *fakeLibrary, ret nvml.Return) { d.gpmSupport = ret }, faults[nvml.ERROR_TIMEOUT]},
	} {
		t.Run(name, func(t *testing.T) {
			d := answering("GPU-0")
			p := profiling(t, d)
			averaging(p.l, map[nvml.GpmMetricId]float64{2: 50}, nil)
			p.look(0)
			p.look(5 * time.Second)
			p.near("before the hole", p.profile().SMActiveTime, 2.5)
			c.breaks(d, p.l, nvml.ERROR_TIMEOUT)
			p.look(5 * time.Second)
			out := p.profile()
			want(t, "window in the hole", out.SMActive, c.why)
			p.near("time in the hole", out.SMActiveTime, 2.5)
			c.breaks(d, p.l, nvml.SUCCESS)
			p.look(5 * time.Second)
			out = p.profile()
			want(t, "window that begins in the hole", out.SMActive, metric.NoData)
			p.near("its time", out.SMActiveTime, 2.5)
			p.look(5 * time.Second)
			out = p.profile()
			want(t, "window after the hole", out.SMActive, 0.5)
			p.near("time after the hole", out.SMActiveTime, 5)
		})
	}
}

// A driver that gives no averages loses that window alone.
func TestProfileWithoutAverages(t *testing.T) {
	p := profiling(t, answering("GPU-0"))
	p.look(0)
	p.l.gpm = func(*nvml.GpmMetricsGetType) nvml.Return { return nvml.ERROR_UNKNOWN }
	p.look(5 * time.Second)
	out := p.profile()
	want(t, "window", out.SMActive, faults[nvml.ERROR_UNKNOWN])
	want(t, "time", out.SMActiveTime, faults[nvml.ERROR_UNKNOWN])
	averaging(p.l, map[nvml.GpmMetricId]float64{2: 20}, nil)
	p.look(5 * time.Second)
	out = p.profile()
	want(t, "the next window", out.SMActive, 0.2)
	p.near("the next time", out.SMActiveTime, 1)
	p.turn(staleAfter)
	want(t, "a window that is not yet old", p.profile().SMActive, 0.2)
	p.turn(time.Second)
	out = p.profile()
	want(t, "a window that is old", out.SMActive, metric.NoData)
	p.near("its time", out.SMActiveTime, 1)
}

// What can be no share is left out of the window and of the count, and the others are not.
func TestProfileOfNonsense(t *testing.T) {
	p := profiling(t, answering("GPU-0"))
	averaging(p.l, map[nvml.GpmMetricId]float64{1: 50, 2: 100.5, 3: -1, 10: math.NaN(), 5: math.Inf(1), 11: 50, 12: 100},
		map[nvml.GpmMetricId]nvml.Return{11: nvml.ERROR_NOT_SUPPORTED, 13: nvml.ERROR_NO_DATA, 4: nvml.ERROR_INVALID_ARGUMENT})
	p.look(0)
	p.look(4 * time.Second)
	out := p.profile()
	want(t, "sound", out.GrEngineActive, 0.5)
	p.near("its time", out.GrEngineActiveTime, 2)
	want(t, "100.5 percent", out.SMActive, metric.Implausible)
	want(t, "-1 percent", out.SMOccupancy, metric.Implausible)
	want(t, "not a number", out.DramActive, metric.Implausible)
	want(t, "infinite", out.PipeActive[telemetry.PipeTensor], metric.Implausible)
	p.near("time of what was nonsense", out.SMActiveTime, 0)
	want(t, "all of the time", out.PipeActive[telemetry.PipeFp32], 1.)
	want(t, "a pipe it has not", out.PipeActive[telemetry.PipeFp64], metric.Unsupported)
	want(t, "the time of a pipe it has not", out.PipeActiveTime[telemetry.PipeFp64], metric.Unsupported)
	want(t, "no data", out.PipeActive[telemetry.PipeFp16], metric.NoData)
	want(t, "an id the driver does not know", out.PipeActive[telemetry.PipeInteger], faults[nvml.ERROR_INVALID_ARGUMENT])
}

// A device that has no profile holds no samples, and none is told of it, not even a count of 0.
func TestProfileUnsupported(t *testing.T) {
	for name, breaks := range map[string]func(*fakeDevice, *fakeLibrary){
		"says so":    func(d *fakeDevice, _ *fakeLibrary) { d.unprofiled = true },
		"refuses":    func(d *fakeDevice, _ *fakeLibrary) { d.gpmSupport = nvml.ERROR_NOT_SUPPORTED },
		"old driver": func(_ *fakeDevice, l *fakeLibrary) { l.missing = []string{"nvmlGpmSampleGet"} },
	} {
		d := answering("GPU-0")
		l := newFakeLibrary(d)
		breaks(d, l)
		n := started(t, l)
		p := profiled{n, n.list()[0], l}
		p.look(0)
		p.look(5 * time.Second)
		out := p.profile()
		want(t, name+": window", out.SMActive, metric.Unsupported)
		want(t, name+": time", out.SMActiveTime, metric.Unsupported)
		if held := l.samples.Load(); held != 0 {
			t.Errorf("%s: %d samples are held", name, held)
		}
	}
}

// A profile that ends, as it may when MIG is turned on, does not leave a count that stands still.
func TestProfileEnds(t *testing.T) {
	d := answering("GPU-0")
	p := profiling(t, d)
	averaging(p.l, map[nvml.GpmMetricId]float64{2: 50}, nil)
	p.look(0)
	p.look(4 * time.Second)
	p.near("time", p.profile().SMActiveTime, 2)
	d.GpmSampleGetFunc = func(nvml.GpmSample) nvml.Return { return nvml.ERROR_NOT_SUPPORTED }
	p.look(4 * time.Second)
	out := p.profile()
	want(t, "window of a profile that ended", out.SMActive, metric.Unsupported)
	want(t, "time of a profile that ended", out.SMActiveTime, metric.Unsupported)
}

// The seconds outlive the driver's handing the device out anew; the time between is a hole.
func TestProfileOfDeviceHandedOutAnew(t *testing.T) {
	p := profiling(t, answering("GPU-0"))
	averaging(p.l, map[nvml.GpmMetricId]float64{2: 50}, map[nvml.GpmMetricId]nvml.Return{11: nvml.ERROR_NOT_SUPPORTED})
	p.look(0)
	p.look(4 * time.Second)
	p.h.release()
	if held := p.l.samples.Load(); held != 0 {
		t.Errorf("%d samples are held of a driver let go", held)
	}
	p.turn(time.Minute)
	p.list()
	out := p.profile()
	want(t, "window", out.SMActive, metric.NoData)
	p.near("time", out.SMActiveTime, 2)
	want(t, "the time of a pipe it has not", out.PipeActiveTime[telemetry.PipeFp64], metric.NoData)
	p.look(0)
	p.near("time after the first look", p.profile().SMActiveTime, 2)
	p.look(4 * time.Second)
	out = p.profile()
	want(t, "window after the second look", out.SMActive, 0.5)
	p.near("time after the second look", out.SMActiveTime, 4)
	want(t, "the time of a pipe it has not", out.PipeActiveTime[telemetry.PipeFp64], metric.Unsupported)
}

// A driver without memory for a sample is a fault, and what it has given is not lost.
func TestProfileWithoutMemory(t *testing.T) {
	d := answering("GPU-0")
	p := profiling(t, d)
	left := 1
	p.l.alloc = func() (nvml.GpmSample, nvml.Return) {
		if left == 0 {
			return nil, nvml.ERROR_MEMORY
		}
		left--
		p.l.samples.Add(1)
		return &mock.GpmSample{FreeFunc: func() nvml.Return {
			p.l.samples.Add(-1)
			return nvml.SUCCESS
		}}, nvml.SUCCESS
	}
	p.look(0)
	want(t, "window", p.profile().SMActive, metric.Failed)
	left = 1
	p.look(0)
	p.look(5 * time.Second)
	want(t, "window, with memory", p.profile().SMActive, 0.)
}
