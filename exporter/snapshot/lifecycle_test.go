package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func TestScrapeBeforeTheDriverOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		defer close(hang)
		src := source.Source{Name: "nvml", Open: func(ctx context.Context) (source.Reader, error) {
			select {
			case <-hang:
			case <-ctx.Done():
			}
			return nil, errors.New("never")
		}}
		f := run(t, Config{Sources: []source.Source{src}})
		start := time.Now()
		s := f.Snapshot(context.Background())
		if took := time.Since(start); took > 2*time.Second || len(s.Devices) != 0 {
			t.Errorf("waited %v", took)
		}
		synctest.Wait() // two clocks ring at that instant
		if h := f.Sources()[0]; h.State != telemetry.SourceStateFailed || h.Err != "open: no answer for 2s" {
			t.Errorf("health %+v", h)
		}
	})
}

func TestAbsentDriverIsPickedUpLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &driver{openErr: source.ErrAbsent}
		f := run(t, Config{Sources: []source.Source{d.source("nvml")}})
		if s := f.Snapshot(context.Background()); len(s.Devices) != 0 || s.Health.Sources[0].State != telemetry.SourceStateAbsent {
			t.Fatalf("health %+v", s.Health)
		}
		d.set(func() { d.openErr, d.devices = nil, []source.Device{newGPU(0)} })
		time.Sleep(31 * time.Second)
		if s := f.Snapshot(context.Background()); len(s.Devices) != 1 || s.Health.Sources[0].State != telemetry.SourceStateServing {
			t.Errorf("health %+v", s.Health)
		}
	})
}

func TestUnbuiltSourceIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int64
		src := source.Source{Name: "nvml", Open: func(context.Context) (source.Reader, error) { tries.Add(1); return nil, source.ErrUnbuilt }}
		f := run(t, Config{Sources: []source.Source{src}})
		time.Sleep(time.Hour)
		if h := f.Sources()[0]; tries.Load() != 1 || h.State != telemetry.SourceStateUnbuilt {
			t.Errorf("%d tries, %+v", tries.Load(), h)
		}
	})
}

// A source that only a new process can read again is reported once it has been read by this one: a
// process that starts on such a driver has no better successor.
func TestStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stale := fmt.Errorf("nvml: init: %w", source.ErrStale)
		d := &driver{devices: []source.Device{newGPU(0)}, openErr: stale}
		var told atomic.Pointer[error]
		f := run(t, Config{Sources: []source.Source{d.source("nvml")}, Stale: func(name string, err error) {
			if name != "nvml" {
				t.Errorf("told of %s", name)
			}
			told.Store(&err)
		}})
		time.Sleep(5 * minute)
		if h := f.Sources()[0]; told.Load() != nil || h.State != telemetry.SourceStateFailed || !strings.Contains(h.Err, "new process") {
			t.Errorf("at the first open: told %v, %+v", told.Load(), h)
		}
		d.set(func() { d.openErr = nil })
		time.Sleep(minute)
		d.set(func() { d.listErr = errors.New("driver unloaded"); d.openErr = source.ErrAbsent })
		time.Sleep(minute)
		if told.Load() != nil {
			t.Errorf("told of a driver that is gone: %v", *told.Load())
		}
		d.set(func() { d.openErr = stale })
		time.Sleep(minute)
		if told.Load() == nil || !errors.Is(*told.Load(), source.ErrStale) {
			t.Error("not told")
		}
	})
}

func TestDriverGoesAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGPU(0)
		d := &driver{devices: []source.Device{g}}
		var logs bytes.Buffer
		f := run(t, Config{Sources: []source.Source{d.source("nvml")}, Logger: slog.New(slog.NewTextHandler(&logs, nil))})
		d.set(func() { d.listErr = errors.New("driver unloaded") })
		time.Sleep(3*time.Minute + 10*time.Second) // between two tries
		s := f.Snapshot(context.Background())
		if got := state(t, &s.Devices[0]); got != telemetry.StateLost {
			t.Errorf("the device is %v", got)
		}
		if len(s.Devices[0].Read.Presence.Info) != 1 {
			t.Error("a lost device must keep its gpu.info")
		}
		if h := s.Health.Sources[0]; h.State != telemetry.SourceStateFailed || h.Err != "list devices: driver unloaded" {
			t.Errorf("health %+v", h)
		}
		if opened, closed := d.opened.Load(), d.closed.Load(); closed == 0 || opened != closed {
			t.Errorf("opened %d times, closed %d", opened, closed)
		}
		if n := strings.Count(logs.String(), "driver unloaded"); n != 1 {
			t.Errorf("the same error was logged %d times", n)
		}
		d.set(func() { d.listErr = nil })
		time.Sleep(time.Minute)
		if s := f.Snapshot(context.Background()); state(t, &s.Devices[0]) != telemetry.StateOK {
			t.Error("the device did not come back")
		}
	})
}

func TestOnlyChosenDevicesAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		off, on := newGPU(0), newGPU(1)
		f := run(t, Config{
			Sources: []source.Source{(&driver{devices: []source.Device{off, on}}).source("nvml")},
			Devices: func(id *telemetry.Identity) bool { return id.UUID == on.id.UUID },
		})
		s := f.Snapshot(context.Background())
		if len(s.Devices) != 1 || s.Devices[0].Identity.UUID != on.id.UUID || off.reads.Load() != 0 {
			t.Errorf("%d devices; the one that is off was read %d times", len(s.Devices), off.reads.Load())
		}
	})
}

func TestIndexIsPinnedToUUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := []*gpu{newGPU(0), newGPU(1), newGPU(2)}
		d := &driver{devices: []source.Device{first[0], first[1], first[2]}}
		f := run(t, Config{Sources: []source.Source{d.source("nvml")}})
		f.Snapshot(context.Background())
		moved := newGPU(2)
		moved.id.Index = 1 // the driver counts again without the lost one
		replaced := newGPU(3)
		replaced.id.Index = 2
		d.set(func() { d.devices = []source.Device{first[0], moved, replaced} })
		time.Sleep(time.Minute)
		s := f.Snapshot(context.Background())
		for i, want := range []struct {
			uuid  string
			state telemetry.State
		}{{"GPU-a", telemetry.StateOK}, {"GPU-b", telemetry.StateLost}, {"GPU-c", telemetry.StateOK}, {"GPU-d", telemetry.StateOK}} {
			got := &s.Devices[i]
			if got.Identity.UUID != want.uuid || got.Identity.Index != i || state(t, got) != want.state {
				t.Errorf("device %d is %s with index %d, %v", i, got.Identity.UUID, got.Identity.Index, state(t, got))
			}
		}
	})
}

// sampledGPU must be looked at every 5 seconds.
type sampledGPU struct {
	*gpu
	samples atomic.Int64
}

func (g *sampledGPU) Sample(context.Context)      { g.samples.Add(1) }
func (g *sampledGPU) SamplePeriod() time.Duration { return 5 * time.Second }

func TestSampledBetweenScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &sampledGPU{gpu: newGPU(0)}
		run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{g}}).source("nvml")}})
		time.Sleep(21 * time.Second)
		if n := g.samples.Load(); n != 5 || g.reads.Load() != 0 {
			t.Errorf("%d samples, want one at the start and one every 5 s; %d reads, want none unasked", n, g.reads.Load())
		}
	})
}

// A reader is not closed while one of its devices hangs in the driver.
func TestCloseWaitsForHungDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGPU(0)
		release := make(chan struct{})
		g.read = func(context.Context, *telemetry.Device) *metric.Reason { <-release; return nil }
		d := &driver{devices: []source.Device{g}}
		f := run(t, Config{Sources: []source.Source{d.source("nvml")}})
		f.Snapshot(context.Background())
		d.set(func() { d.listErr = errors.New("gone") })
		time.Sleep(time.Minute)
		if d.closed.Load() != 0 {
			t.Error("closed under a device that hangs")
		}
		if h := f.Sources()[0]; h.State != telemetry.SourceStateFailed || h.Err != "list devices: gone" {
			t.Errorf("health %+v while it is being closed", h)
		}
		close(release)
		time.Sleep(firstRetry / 2) // it is not opened again yet
		if d.closed.Load() != 1 {
			t.Error("not closed once the device answered")
		}
	})
}
