package snapshot

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// owning is a stage that sets the owner of the first device, and hangs on request.
type owning struct {
	hang atomic.Pointer[chan struct{}]
	took []time.Time // when the snapshots it completed were taken
	runs atomic.Int64
}

func (o *owning) stage() Stage {
	return Stage{Name: "owning", Run: o.run, Partial: func(s, last *Snapshot) {
		if last != nil {
			s.Devices[0].Owned = last.Devices[0].Owned
		}
	}}
}

func (o *owning) run(s *Snapshot) {
	o.runs.Add(1)
	if hang := o.hang.Load(); hang != nil {
		<-*hang
	}
	o.took = append(o.took, s.Taken)
	s.Devices[0].Owned = metric.NewLabels(metric.Label{Name: "owner", Value: "a"})
}

// stall makes the stage hang until the returned function is called.
func (o *owning) stall() (end func()) {
	hang := make(chan struct{})
	o.hang.Store(&hang)
	return func() { o.hang.Store(nil); close(hang) }
}

func drawOf(s *Snapshot) float64 {
	n, _ := s.Devices[0].Read.Power.Draw.Get()
	return n
}

// A stage that hangs costs its own work: scrapes are answered in time with fresh readings and the owners
// known last, devices can be released and acquired, and the process ends.
func TestFeed_HungStageCostsOnlyItsOwnWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, o, draw := newGPU(0), new(owning), 0.
		g.read = func(_ context.Context, d *telemetry.Device) *metric.Reason { d.Power.Draw.Set(draw); return nil }
		after := 0
		var logs bytes.Buffer
		f := NewFeed(Config{
			Sources: []source.Source{(&driver{devices: []source.Device{g}}).source("nvml")},
			Stages:  []Stage{o.stage(), {Name: "next", Run: func(*Snapshot) { after++ }}},
			Logger:  slog.New(slog.NewTextHandler(&logs, nil)),
		})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { f.Run(ctx); close(ended) }()
		synctest.Wait()
		if s := f.Snapshot(context.Background()); s.Partial || s.Devices[0].Owned.Get("owner") != "a" {
			t.Fatalf("partial %v, owner %q before anything hangs", s.Partial, s.Devices[0].Owned.Text())
		}
		end := o.stall()
		time.Sleep(interval)
		for i, patience := range []time.Duration{100 * time.Millisecond, time.Second, time.Hour, 3 * time.Second} {
			draw = float64(500 + i)
			limit, done := context.WithTimeout(context.Background(), patience)
			start := time.Now()
			s := f.Snapshot(limit)
			done()
			if took := time.Since(start); took > min(patience, 2*time.Second) {
				t.Errorf("scrape %d was answered after %v, want at most %v or the read timeout", i, took, patience)
			}
			if !s.Partial || s.Devices[0].Owned.Get("owner") != "a" || drawOf(s) != draw || state(t, &s.Devices[0]) != telemetry.StateOK {
				t.Errorf("scrape %d: partial %v, owner %q, draw %v; want a partial snapshot with the owner and %v", i, s.Partial, s.Devices[0].Owned.Text(), drawOf(s), draw)
			}
			time.Sleep(interval)
		}
		if n := o.runs.Load(); n != 2 || after != 1 {
			t.Errorf("the stage ran %d times and the next one %d times, want 2 and 1: one at a time, in order", n, after)
		}
		start := time.Now()
		if err := f.Release(context.Background(), 0); err != nil || time.Since(start) != 0 {
			t.Errorf("released after %v: %v", time.Since(start), err)
		}
		if got := states(t, f.Snapshot(context.Background())); got != "released" {
			t.Errorf("a released device is %s", got)
		}
		f.Acquire()
		synctest.Wait()
		if s := f.Snapshot(context.Background()); states(t, s) != "ok" || !slices.Contains(s.Health.Faults, Fault{"owning", "*", "late", 6}) {
			t.Errorf("after acquiring: %s; faults %+v, want six of the stage", states(t, s), s.Health.Faults)
		}
		if n := strings.Count(logs.String(), "does not end"); n != 1 || !strings.Contains(logs.String(), "stage=owning") {
			t.Errorf("logged %d times, want once with the stage's name:\n%s", n, logs.String())
		}
		cancel()
		<-ended
		end()
		synctest.Wait()
	})
}

func TestFeed_StagesGoOnOnceAHungOneEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := new(owning)
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{newGPU(0)}}).source("nvml")}, Stages: []Stage{o.stage()}})
		end := o.stall()
		if s := f.Snapshot(context.Background()); !s.Partial || s.Devices[0].Owned.Get("owner") != "" {
			t.Errorf("partial %v, owner %q while the first stage hangs", s.Partial, s.Devices[0].Owned.Text())
		}
		time.Sleep(interval)
		end()
		synctest.Wait()
		if s := f.Snapshot(context.Background()); s.Partial || s.Devices[0].Owned.Get("owner") != "a" {
			t.Errorf("partial %v, owner %q after the stage ended", s.Partial, s.Devices[0].Owned.Text())
		}
		time.Sleep(interval)
		f.Snapshot(context.Background())
		if len(o.took) != 3 || !slices.IsSortedFunc(o.took, time.Time.Compare) {
			t.Errorf("snapshots of %v were completed, want three in order", o.took)
		}
	})
}

// A snapshot whose stages run while devices are released must not be served after that, whether the next
// scrape comes before the stages end or later.
func TestFeed_SnapshotInItsStagesDuringAReleaseIsNotServedAgain(t *testing.T) {
	for name, early := range map[string]bool{"scrape before the stages end": true, "scrape after the stages end": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := new(owning)
				f := run(t, Config{
					Sources: []source.Source{(&driver{devices: []source.Device{newGPU(0)}}).source("nvml")}, Stages: []Stage{o.stage()}, MaxAge: time.Hour,
				})
				end := o.stall()
				before, after := make(chan *Snapshot, 1), make(chan *Snapshot, 1)
				go func() { before <- f.Snapshot(context.Background()) }()
				synctest.Wait()
				if err := f.Release(context.Background(), 0); err != nil {
					t.Fatal(err)
				}
				if early {
					go func() { after <- f.Snapshot(context.Background()) }()
					synctest.Wait()
				}
				end()
				if got := states(t, <-before); got != "ok" {
					t.Errorf("scrape from before the release: %s, want ok", got)
				}
				if !early {
					after <- f.Snapshot(context.Background())
				}
				if got := states(t, <-after); got != "released" {
					t.Errorf("scrape from after the release: %s, want released", got)
				}
			})
		})
	}
}

func TestFeed_PanickingStageIsAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, Config{
			Sources: []source.Source{(&driver{devices: []source.Device{newGPU(0)}}).source("nvml")},
			Stages:  []Stage{{Name: "wrong", Run: func(*Snapshot) { panic("a mistake") }}},
		})
		f.Snapshot(context.Background())
		time.Sleep(interval)
		f.Snapshot(context.Background())
		time.Sleep(interval)
		if got, want := f.Snapshot(context.Background()).Health.Faults, (Fault{"wrong", "*", "panicked", 2}); len(got) != 1 || got[0] != want {
			t.Errorf("faults %+v, want %+v", got, want)
		}
	})
}

// After a release two rounds may wait for a stage at once: the older must not come after the newer.
func TestStages_LeaveOutASnapshotOlderThanTheLast(t *testing.T) {
	o := new(owning)
	x := newStages(&Config{Stages: []Stage{o.stage()}, Timeout: time.Hour, Logger: slog.New(slog.DiscardHandler)}, func(Fault) {})
	at := func(reads uint64) *Snapshot {
		return &Snapshot{Devices: make([]Device, 1), Health: Health{Reads: reads}}
	}
	for _, c := range []struct {
		reads    uint64
		complete bool
	}{{1, true}, {3, true}, {2, false}, {4, true}} {
		if got := x.complete(at(c.reads)); got != c.complete {
			t.Errorf("snapshot of read %d: complete %v, want %v", c.reads, got, c.complete)
		}
	}
	if n := o.runs.Load(); n != 3 || x.newest().Health.Reads != 4 {
		t.Errorf("the stage ran %d times, the newest is of read %d; want 3 and 4", n, x.newest().Health.Reads)
	}
}
