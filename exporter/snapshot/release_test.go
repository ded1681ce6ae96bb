package snapshot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// patience is how long a test waits for a release.
func patience(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// states names the state of each device.
func states(t *testing.T, s *Snapshot) string {
	t.Helper()
	var out []string
	for i := range s.Devices {
		out = append(out, state(t, &s.Devices[i]).String())
	}
	return strings.Join(out, " ")
}

func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, m := &driver{devices: []source.Device{newGPU(0), newGPU(1)}}, new(machine)
		f := run(t, Config{Sources: []source.Source{d.source("nvml"), m.source()}})
		before := f.Snapshot(context.Background())
		if r := f.Released(); !r.Until.IsZero() || len(r.Devices) != 0 {
			t.Errorf("before a release: %+v", r)
		}
		start := time.Now()
		if err := f.Release(context.Background(), 0); err != nil || d.closed.Load() != 1 {
			t.Fatalf("%v; closed %d times", err, d.closed.Load())
		}
		r := f.Released()
		if r.Until.Sub(start) != DefaultRelease || !slices.Equal(r.Sources, []string{"nvml"}) || !slices.Equal(r.Devices, []string{"GPU-a", "GPU-b"}) || r.Holding != nil {
			t.Errorf("released %+v", r)
		}
		for range 3 {
			asked := time.Now()
			s := f.Snapshot(context.Background())
			if took := time.Since(asked); took > time.Millisecond { // what the host takes
				t.Errorf("answered after %v", took)
			}
			if got := states(t, s); got != "released released" || s.Host == nil || m.closed.Load() != 0 {
				t.Errorf("%s, host %v", got, s.Host)
			}
			if s.Devices[1].Labels.Text() != before.Devices[1].Labels.Text() || len(s.Devices[1].Read.Presence.Info) != 1 {
				t.Error("who a released device is must still be told")
			}
			if h := s.Health.Sources; h[0].State != telemetry.SourceStateReleased || h[0].Err != "" || h[0].Devices != 0 || h[1].State != telemetry.SourceStateServing {
				t.Errorf("health %+v", h)
			}
			if len(s.Health.Faults) != 1 { // the fake host's
				t.Errorf("faults %+v", s.Health.Faults)
			}
			time.Sleep(4 * time.Minute)
		}
		time.Sleep(3 * time.Minute)
		if s := f.Snapshot(context.Background()); states(t, s) != "ok ok" || d.opened.Load() != 2 || !f.Released().Until.IsZero() {
			t.Errorf("after its time: %s, opened %d times, %+v", states(t, s), d.opened.Load(), f.Released())
		}
		if err := f.Release(context.Background(), 0); err != nil || states(t, f.Snapshot(context.Background())) != "released released" {
			t.Error("a picture from before a release is served")
		}
		f.Acquire()
		synctest.Wait()
		if states(t, f.Snapshot(context.Background())) != "ok ok" {
			t.Error("a picture from during a release is served")
		}
	})
}

// Devices are taken back at once, not when a source would be tried again, and the page does not
// say that they are lost while their driver is being opened.
func TestAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &driver{devices: []source.Device{newGPU(0)}}
		src := d.source("nvml")
		quick := src.Open
		src.Open = func(ctx context.Context) (source.Reader, error) { time.Sleep(time.Second); return quick(ctx) }
		f := run(t, Config{Sources: []source.Source{src}, MaxAge: time.Millisecond})
		f.Snapshot(context.Background())
		f.Acquire() // of what is not released
		if err := f.Release(context.Background(), time.Hour); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		f.Acquire()
		synctest.Wait()
		if got := states(t, f.Snapshot(context.Background())); got != "released" {
			t.Errorf("while it is being opened: %s", got)
		}
		time.Sleep(1001 * time.Millisecond)
		if got := states(t, f.Snapshot(context.Background())); got != "ok" || d.opened.Load() != 2 {
			t.Errorf("%s, opened %d times", got, d.opened.Load())
		}
		d.set(func() { d.openErr = errors.New("version mismatch") })
		if err := f.Release(context.Background(), time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute + 2*time.Second)
		if s := f.Snapshot(context.Background()); states(t, s) != "lost" || s.Health.Sources[0].State != telemetry.SourceStateFailed {
			t.Errorf("when the driver does not open again: %s, %+v", states(t, s), s.Health.Sources[0])
		}
	})
}

func TestReleaseTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{newGPU(0)}}).source("nvml")}})
		for _, d := range []time.Duration{-time.Second, MaxRelease + 1} {
			if err := f.Release(context.Background(), d); err == nil || errors.Is(err, ErrHeld) || !f.Released().Until.IsZero() {
				t.Errorf("for %v: %v", d, err)
			}
		}
		start := time.Now()
		for _, c := range []struct{ d, want time.Duration }{{10 * time.Minute, 10 * time.Minute}, {time.Minute, 10 * time.Minute}, {time.Hour, time.Hour}} {
			if err := f.Release(context.Background(), c.d); err != nil || f.Released().Until.Sub(start) != c.want {
				t.Errorf("for %v: %v, until %v after the first, want %v", c.d, err, f.Released().Until.Sub(start), c.want)
			}
		}
		f.acquire(true) // by a clock that rang as it was put off
		time.Sleep(59 * time.Minute)
		if f.Released().Until.IsZero() {
			t.Error("taken back at the end of the first time")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !f.Released().Until.IsZero() {
			t.Error("not taken back")
		}
	})
}

// A driver that is not there must stay untouched when it comes while its devices are released.
func TestReleaseOfWhatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &driver{openErr: source.ErrAbsent}
		f := NewFeed(Config{Sources: []source.Source{d.source("nvml")}})
		if err := f.Release(context.Background(), time.Minute); err != nil { // before Run
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { f.Run(ctx); close(ended) }()
		synctest.Wait()
		d.set(func() { d.openErr, d.devices = nil, []source.Device{newGPU(0)} })
		if s := f.Snapshot(context.Background()); len(s.Devices) != 0 || s.Health.Sources[0].State != telemetry.SourceStateReleased {
			t.Errorf("%+v", s.Health.Sources[0])
		}
		time.Sleep(59 * time.Second)
		if d.opened.Load() != 0 {
			t.Error("opened while released")
		}
		time.Sleep(2 * time.Second)
		if got := states(t, f.Snapshot(context.Background())); got != "ok" {
			t.Errorf("taken back: %q", got)
		}
		if err := f.Release(context.Background(), time.Hour); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		cancel()
		<-ended
		if took := time.Since(start); took != 0 {
			t.Errorf("while released, ended after %v", took)
		}
	})
}

// A scrape that waits for a device is answered when the devices are released, and what it did not
// hear is no fault.
func TestReleaseDuringAScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newGPU(0)
		slow.read = func(context.Context, *telemetry.Device) *metric.Reason { time.Sleep(time.Second); return nil }
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{slow, newGPU(1)}}).source("nvml")}})
		start := time.Now()
		var scrapes sync.WaitGroup
		for range 10 {
			scrapes.Go(func() {
				s := f.Snapshot(context.Background())
				if got := states(t, s); got != "released released" || time.Since(start) != 0 || len(s.Health.Faults) != 0 {
					t.Errorf("%s after %v, faults %+v", got, time.Since(start), s.Health.Faults)
				}
			})
		}
		synctest.Wait()
		if err := f.Release(context.Background(), 0); err != nil || time.Since(start) != time.Second {
			t.Errorf("%v after %v; its driver was busy for a second", err, time.Since(start))
		}
		scrapes.Wait()
	})
}

// Whatever comes together, each scrape is answered, no device is called lost and nothing is a fault.
func TestReleaseAndAcquireUnderLoad(t *testing.T) {
	d := &driver{}
	var inside, most atomic.Int64
	for i := range 4 {
		g := newGPU(i)
		g.read = func(context.Context, *telemetry.Device) *metric.Reason {
			most.Store(max(most.Load(), d.opened.Load()-d.closed.Load()))
			inside.Add(1)
			defer inside.Add(-1)
			return nil
		}
		d.devices = append(d.devices, g)
	}
	f := NewFeed(Config{Sources: []source.Source{d.source("nvml")}, MaxAge: time.Nanosecond})
	ctx, cancel := context.WithCancel(context.Background())
	var all, feed sync.WaitGroup
	feed.Go(func() { f.Run(ctx) })
	if got := states(t, f.Snapshot(ctx)); got != "ok ok ok ok" {
		t.Fatal(got)
	}
	for range 200 {
		all.Go(func() {
			for range 20 {
				s := f.Snapshot(ctx)
				for i := range s.Devices {
					if got := state(t, &s.Devices[i]); got != telemetry.StateOK && got != telemetry.StateReleased {
						t.Errorf("a device is %v", got)
					}
				}
				if len(s.Devices) != 4 || len(s.Health.Faults) != 0 {
					t.Errorf("%d devices, faults %+v", len(s.Devices), s.Health.Faults)
				}
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for range 50 {
				if err := f.Release(ctx, time.Hour); err != nil && !strings.Contains(err.Error(), "taken back") {
					t.Error(err)
				}
				f.Acquire()
			}
		})
	}
	all.Wait()
	if err := f.Release(ctx, 0); err != nil || inside.Load() != 0 || d.opened.Load() != d.closed.Load() {
		t.Errorf("%v; %d devices are being read; opened %d times, closed %d", err, inside.Load(), d.opened.Load(), d.closed.Load())
	}
	if most.Load() > 1 {
		t.Errorf("%d readers were open at once", most.Load())
	}
	cancel()
	feed.Wait()
}
