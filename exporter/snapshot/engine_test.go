package snapshot

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// farm is a source that reads the host and finds engines, and lists no devices.
type farm struct {
	machine
	engines []source.Engine
	slow    atomic.Int64 // nanoseconds it takes to list them
	held    atomic.Int64 // nanoseconds it takes to read the host
}

func (f *farm) ReadHost(ctx context.Context, h *telemetry.Host) *metric.Reason {
	time.Sleep(time.Duration(f.held.Load()))
	return f.machine.ReadHost(ctx, h)
}

func (f *farm) Engines(context.Context) []source.Engine {
	time.Sleep(time.Duration(f.slow.Load()))
	return f.engines
}

func (f *farm) source() source.Source {
	return source.Source{Name: "farm", Open: func(context.Context) (source.Reader, error) { f.opened.Add(1); return f, nil }}
}

// model is an engine whose Read does what the test says.
type model struct {
	name string
	read func(*telemetry.Engine) *metric.Reason
}

func (m model) Labels() *metric.Labels {
	return telemetry.EngineAttributes{InferenceModel: m.name}.Labels()
}

func (m model) Read(_ context.Context, e *telemetry.Engine) *metric.Reason {
	e.Inference.RequestsRunning.Set(3)
	return m.read(e)
}

// named are the models of a picture's engines.
func named(s *Snapshot) (names []string) {
	for _, e := range s.Engines {
		names = append(names, e.Labels.Get("inference_model"))
	}
	return names
}

// An engine that fails, or whose reader panics, costs only its own series.
func TestEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farm{engines: []source.Engine{
			model{"a", func(*telemetry.Engine) *metric.Reason { return nil }},
			model{"b", func(*telemetry.Engine) *metric.Reason { return metric.Failed }},
			model{"c", func(*telemetry.Engine) *metric.Reason { panic("of c") }},
			model{"d", func(e *telemetry.Engine) *metric.Reason {
				e.Inference.PromptTokens.Fail(metric.Implausible)
				return nil
			}},
			model{"e", func(*telemetry.Engine) *metric.Reason { return metric.NoData }},
		}}
		feed := run(t, Config{Sources: []source.Source{f.source()}})
		feed.Snapshot(context.Background())
		time.Sleep(minute)
		s := feed.Snapshot(context.Background())
		if got := named(s); !slices.Equal(got, []string{"a", "d"}) || s.Host == nil {
			t.Errorf("engines %v and host %v, want a, d and one", got, s.Host)
		}
		want := []Fault{{"farm", "*", "failed", 2}, {"farm", "*", "panicked", 2}, {"farm", "inference.prompt.tokens", "implausible", 2}, {"farm", "system.cpu.online", "implausible", 2}}
		if !slices.Equal(s.Health.Faults, want) {
			t.Errorf("faults %+v, want %+v", s.Health.Faults, want)
		}
	})
}

// A source whose engines can not be listed in time costs nobody but its engines, and no more than the deadline.
func TestEnginesAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farm{engines: []source.Engine{model{"a", func(*telemetry.Engine) *metric.Reason { return nil }}}}
		f.slow.Store(int64(minute))
		feed := run(t, Config{Sources: []source.Source{f.source(), (&driver{devices: []source.Device{newGPU(0)}}).source("nvml")}})
		begin := time.Now()
		s := feed.Snapshot(context.Background())
		if len(s.Engines) != 0 || s.Host == nil || len(s.Devices) != 1 || state(t, &s.Devices[0]) != telemetry.StateOK {
			t.Errorf("engines %v, host %v, devices %+v", named(s), s.Host, s.Devices)
		}
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("a picture took %v", took)
		}
		f.slow.Store(0)
		time.Sleep(2 * minute)
		if got := named(feed.Snapshot(context.Background())); !slices.Equal(got, []string{"a"}) {
			t.Errorf("then engines %v, want a", got)
		}
	})
}

// A source that is lost is not opened again before both its workers are done with it: the one of the
// host and the one of engines.
func TestEnginesAreWaitedFor(t *testing.T) {
	for name, hang := range map[string]func(*farm) *atomic.Int64{
		"host":    func(f *farm) *atomic.Int64 { return &f.held },
		"engines": func(f *farm) *atomic.Int64 { return &f.slow },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := new(farm)
				hang(f).Store(int64(10 * minute))
				feed := run(t, Config{Sources: []source.Source{f.source()}})
				feed.Snapshot(context.Background())
				f.set(func() { f.listErr = errors.New("gone") })
				time.Sleep(5 * minute)
				if n := f.closed.Load(); n != 0 {
					t.Errorf("closed %d times while it is read", n)
				}
				f.set(func() { f.listErr = nil })
				time.Sleep(10 * minute)
				if opened, closed := f.opened.Load(), f.closed.Load(); opened != 2 || closed != 1 {
					t.Errorf("opened %d times and closed %d times, want 2 and 1", opened, closed)
				}
			})
		})
	}
}
