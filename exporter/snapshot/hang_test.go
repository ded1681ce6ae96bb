package snapshot

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// minute is a little more than one: devices are listed again on the minute.
const minute = time.Minute + time.Millisecond

// A scrape whose time is over before anything was asked finds devices late, not lost.
func TestExpiredScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{newGPU(0)}}).source("nvml")}})
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for range 100 {
			if s := f.Snapshot(ctx); s.Partial && state(t, &s.Devices[0]) == telemetry.StateLost {
				t.Fatal("a device nobody asked is lost")
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// A device found while a round is under way, or before the first, is not in its picture; one that
// went without ever being asked is.
func TestDeviceNobodyAskedYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		opening := source.Source{Name: "sim", Open: func(context.Context) (source.Reader, error) { <-release; return nil, source.ErrAbsent }}
		slow := newGPU(0)
		slow.read = func(context.Context, *telemetry.Device) *metric.Reason { time.Sleep(time.Second); return nil }
		d := &driver{devices: []source.Device{slow}}
		f := run(t, Config{Sources: []source.Source{d.source("nvml"), opening}, Relist: 100 * time.Millisecond})
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if s := f.Snapshot(ctx); len(s.Devices) != 0 {
			t.Errorf("before the first round: the device is %v", state(t, &s.Devices[0]))
		}
		close(release)
		synctest.Wait()
		pictures := make(chan *Snapshot)
		go func() { pictures <- f.Snapshot(context.Background()) }()
		synctest.Wait()
		d.set(func() { d.devices = append(d.devices, newGPU(1)) })
		if s := <-pictures; len(s.Devices) != 1 || state(t, &s.Devices[0]) != telemetry.StateOK {
			t.Errorf("%d devices in the picture of a round that asked one", len(s.Devices))
		}
		time.Sleep(2 * time.Second)
		if s := f.Snapshot(context.Background()); len(s.Devices) != 2 || state(t, &s.Devices[1]) != telemetry.StateOK {
			t.Errorf("%d devices in the next picture", len(s.Devices))
		}
	})
}

// A device that goes while it hangs and comes back is read by one goroutine at a time, and its
// driver is not closed under it.
func TestDeviceComesBackWhileItHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sick, well := newGPU(0), newGPU(1)
		release := make(chan struct{})
		var inside, most atomic.Int64
		sick.read = func(context.Context, *telemetry.Device) *metric.Reason {
			most.Store(max(most.Load(), inside.Add(1)))
			defer inside.Add(-1)
			<-release
			return nil
		}
		d := &driver{devices: []source.Device{sick, well}}
		f := run(t, Config{Sources: []source.Source{d.source("nvml")}})
		for _, listed := range [][]source.Device{{sick, well}, {well}, {sick, well}} {
			d.set(func() { d.devices = listed })
			time.Sleep(minute)
			f.Snapshot(context.Background())
		}
		if s := f.Snapshot(context.Background()); most.Load() != 1 || state(t, &s.Devices[0]) != telemetry.StateLate {
			t.Errorf("read by %d at once, %v", most.Load(), state(t, &s.Devices[0]))
		}
		d.set(func() { d.devices = []source.Device{well} })
		time.Sleep(minute)
		d.set(func() { d.listErr = errors.New("gone") })
		time.Sleep(minute)
		if d.closed.Load() != 0 {
			t.Error("closed under a device that hangs, though it is no longer listed")
		}
		d.set(func() { d.devices, d.listErr = []source.Device{sick, well}, nil })
		close(release)
		time.Sleep(minute)
		if s := f.Snapshot(context.Background()); state(t, &s.Devices[0]) != telemetry.StateOK {
			t.Error("the device did not come back")
		}
	})
}

// Nobody waits for a worker that was stopped after it was asked.
func TestStoppedWorkerAnswers(t *testing.T) {
	for cause, want := range map[error]*metric.Reason{errors.New("gone"): metric.Lost, errReleased: metric.Released} {
		synctest.Test(t, func(t *testing.T) {
			w := deviceWorker("nvml", newGPU(0), nil, nil)
			term, end := context.WithCancelCause(context.Background())
			w.start(term, nil)
			end(cause)
			<-w.stopped
			r := newRound(time.Now(), []*worker{w}, absence{})
			start := time.Now()
			r.run(time.Minute, func() {})
			if got := r.arrived()[0].reading.why; time.Since(start) != 0 || got != want {
				t.Errorf("%v: answered %v after %v", cause, got, time.Since(start))
			}
		})
	}
}

// Nor for one that was asked while it was busy, and stopped before it could look.
func TestStoppedWorkerAnswersWhatWaits(t *testing.T) {
	for range 20 { // a worker that may choose between the two ends may choose either
		synctest.Test(t, func(t *testing.T) {
			g := newGPU(0)
			release := make(chan struct{})
			g.read = func(context.Context, *telemetry.Device) *metric.Reason { <-release; return nil }
			w := deviceWorker("nvml", g, nil, slog.New(slog.DiscardHandler))
			w.start(context.Background(), nil)
			for range 2 {
				go newRound(time.Now(), []*worker{w}, absence{}).run(time.Millisecond, func() {})
				synctest.Wait()
			}
			time.Sleep(time.Second)
			waiting := <-w.requests
			w.requests <- waiting
			w.stop()
			close(release)
			synctest.Wait()
			if got := waiting.round.arrived()[0].reading; got.device == nil && got.why != metric.Lost {
				t.Errorf("the request that waited is answered %v", got.why)
			}
		})
	}
}

// A driver that hangs does not keep the process from ending.
func TestRunEndsWhateverHangs(t *testing.T) {
	for name, hang := range map[string]func(release chan struct{}) source.Source{
		"open": func(release chan struct{}) source.Source {
			return source.Source{Name: "nvml", Open: func(context.Context) (source.Reader, error) { <-release; return nil, source.ErrAbsent }}
		},
		"read": func(release chan struct{}) source.Source {
			g := newGPU(0)
			g.read = func(context.Context, *telemetry.Device) *metric.Reason { <-release; return nil }
			return (&driver{devices: []source.Device{g}}).source("nvml")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				f := NewFeed(Config{Sources: []source.Source{hang(release)}})
				ctx, cancel := context.WithCancel(context.Background())
				start := time.Now()
				time.AfterFunc(time.Second, func() { f.Snapshot(context.Background()) })
				time.AfterFunc(time.Minute, cancel)
				f.Run(ctx)
				if took := time.Since(start); took > time.Minute+5*time.Second {
					t.Errorf("ended %v after it was told", took-time.Minute)
				}
			})
		})
	}
}

// A driver that answers just when its time is over has answered.
func TestAnswerAtTheLastMoment(t *testing.T) {
	for range 200 { // either may be noticed first
		synctest.Test(t, func(t *testing.T) {
			d := &driver{devices: []source.Device{newGPU(0)}}
			open := func(context.Context) (source.Reader, error) { time.Sleep(2 * time.Second); return d, nil }
			f := run(t, Config{Sources: []source.Source{{Name: "nvml", Open: open}}})
			time.Sleep(3 * time.Second)
			if h := f.Sources()[0]; h.State != telemetry.SourceStateServing || h.Err != "" {
				t.Fatalf("health %+v", h)
			}
		})
	}
}

// panicking is a source whose code is wrong wherever the test says.
type panicking struct {
	*driver
	*gpu
	at string
}

func (p *panicking) fail(at string) {
	if p.at == at {
		panic(at)
	}
}

func (p *panicking) Devices(context.Context) ([]source.Device, error) {
	p.fail("devices")
	if p.at == "close" {
		return nil, errors.New("gone")
	}
	return []source.Device{p}, nil
}
func (p *panicking) Identity() *telemetry.Identity { p.fail("identity"); return p.gpu.Identity() }
func (p *panicking) Sample(context.Context)        { p.fail("sample") }
func (p *panicking) SamplePeriod() time.Duration   { p.fail("period"); return time.Second }
func (p *panicking) Close() error                  { p.fail("close"); return nil }

// Whatever panics in one source or stage, the others go on.
func TestPanicIsNobodyElses(t *testing.T) {
	for at, want := range map[string]string{
		"open": "panicked: open", "devices": "list devices: panicked: devices", "close": "list devices: gone",
		"identity": "sim: device *snapshot.panicking: no identity: panicked: identity", "period": "", "sample": "", "stage": "",
	} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &panicking{driver: &driver{}, gpu: newGPU(0), at: at}
				sick := source.Source{Name: "sim", Open: func(context.Context) (source.Reader, error) { p.fail("open"); return p, nil }}
				staged := false
				stages := []Stage{{Name: "a", Run: func(*Snapshot) { p.fail("stage") }}, {Name: "b", Run: func(*Snapshot) { staged = true }}}
				f := run(t, Config{Sources: []source.Source{sick, (&driver{devices: []source.Device{newGPU(1)}}).source("nvml")}, Stages: stages})
				time.Sleep(5 * minute)
				s := f.Snapshot(context.Background())
				if state(t, &s.Devices[len(s.Devices)-1]) != telemetry.StateOK || !staged {
					t.Error("the other source or stage suffers")
				}
				if h := f.Sources()[0]; h.Err != want {
					t.Errorf("the source says %q, want %q", h.Err, want)
				}
			})
		})
	}
}
