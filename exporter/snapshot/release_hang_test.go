package snapshot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// hung is a device whose driver does not answer until the channel is closed.
func hung(index int) (*gpu, chan struct{}) {
	g, answer := newGPU(index), make(chan struct{})
	g.read = func(context.Context, *telemetry.Device) *metric.Reason { <-answer; return nil }
	return g, answer
}

// A device that hangs is named; its driver is closed when it answers.
func TestReleaseWhileADeviceHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sick, answer := hung(1)
		d := &driver{devices: []source.Device{newGPU(0), sick}}
		f := run(t, Config{Sources: []source.Source{d.source("nvml")}})
		f.Snapshot(context.Background())
		err := f.Release(patience(t, 3*time.Second), time.Hour)
		if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "nvml: GPU-b") || strings.Contains(err.Error(), "GPU-a") {
			t.Errorf("%v", err)
		}
		s := f.Snapshot(context.Background())
		if got := states(t, s); got != "released late" || d.closed.Load() != 0 {
			t.Errorf("%s, closed %d times", got, d.closed.Load())
		}
		if h := s.Health.Sources[0]; h.State != telemetry.SourceStateFailed || h.Err != "still held: no answer from GPU-b" {
			t.Errorf("health %+v", h)
		}
		if r := f.Released(); !slices.Equal(r.Holding, []string{"nvml: GPU-b"}) || r.Sources != nil || r.Devices != nil {
			t.Errorf("released %+v", r)
		}
		close(answer)
		time.Sleep(2 * time.Second)
		if s := f.Snapshot(context.Background()); states(t, s) != "released released" || d.closed.Load() != 1 ||
			s.Health.Sources[0].State != telemetry.SourceStateReleased || f.Released().Holding != nil {
			t.Errorf("once it answers: %s, closed %d times, %+v", states(t, s), d.closed.Load(), f.Released())
		}
		if err := f.Release(context.Background(), 0); err != nil {
			t.Errorf("once it has answered: %v", err)
		}
	})
}

// What can not be closed is read again when it is taken back: one device that hangs for ever must
// not cost the others.
func TestAcquireWhileADeviceHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sick, answer := hung(1)
		d := &driver{devices: []source.Device{newGPU(0), sick}}
		f := run(t, Config{Sources: []source.Source{d.source("nvml")}})
		f.Snapshot(context.Background())
		for range 3 {
			if err := f.Release(patience(t, 3*time.Second), time.Hour); !errors.Is(err, ErrHeld) {
				t.Fatal(err)
			}
			f.Acquire()
			synctest.Wait()
			if s := f.Snapshot(context.Background()); states(t, s) != "ok late" || d.opened.Load() != 1 || sick.reads.Load() != 1 {
				t.Errorf("%s, opened %d times, the sick one read %d times", states(t, s), d.opened.Load(), sick.reads.Load())
			}
		}
		released := make(chan error)
		go func() { released <- f.Release(context.Background(), 0) }()
		synctest.Wait()
		f.Acquire()
		if err := <-released; !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "taken back") {
			t.Errorf("a release that was taken back while it waited: %v", err)
		}
		synctest.Wait()
		close(answer)
		time.Sleep(minute)
		if got := states(t, f.Snapshot(context.Background())); got != "ok ok" {
			t.Errorf("once it answers: %s", got)
		}
		if err := f.Release(context.Background(), 0); err != nil || d.closed.Load() != 1 {
			t.Errorf("%v, closed %d times", err, d.closed.Load())
		}
	})
}

// Nor are devices called lost while the source that could not be closed lists them again.
func TestAcquireListsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sick, answer := hung(1)
		defer close(answer)
		lists := make(chan struct{}, 1)
		lists <- struct{}{}
		d := &slowDriver{driver: &driver{devices: []source.Device{newGPU(0), sick}}, at: "list", answer: lists}
		open := func(context.Context) (source.Reader, error) { return d, nil }
		f := run(t, Config{Sources: []source.Source{{Name: "nvml", Open: open}}})
		f.Snapshot(context.Background())
		if err := f.Release(patience(t, 3*time.Second), time.Hour); !errors.Is(err, ErrHeld) {
			t.Fatal(err)
		}
		f.Acquire()
		synctest.Wait()
		if got := states(t, f.Snapshot(context.Background())); got != "released released" {
			t.Errorf("while they are listed: %s", got)
		}
		close(lists)
		time.Sleep(2 * time.Second)
		if got := states(t, f.Snapshot(context.Background())); got != "ok late" {
			t.Errorf("then: %s", got)
		}
	})
}

// What hangs in the source itself is named too, and what it brings late is closed at once.
func TestReleaseWhileTheSourceHangs(t *testing.T) {
	for at, want := range map[string]string{"open": "nvml: open", "list": "nvml: list devices", "close": "nvml: close"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := make(chan struct{})
				g := newGPU(0)
				d := &slowDriver{driver: &driver{devices: []source.Device{g}}, at: at, answer: answer}
				open := func(ctx context.Context) (source.Reader, error) { d.wait("open"); d.opened.Add(1); return d, nil }
				f := run(t, Config{Sources: []source.Source{{Name: "nvml", Open: open}}})
				err := f.Release(patience(t, 3*time.Second), time.Hour)
				if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q named", err, want)
				}
				close(answer)
				synctest.Wait()
				if h := f.Sources()[0]; d.closed.Load() != 1 || h.State != telemetry.SourceStateReleased || f.Released().Holding != nil {
					t.Errorf("once it answers: closed %d times, %+v", d.closed.Load(), h)
				}
				if n := len(f.Snapshot(context.Background()).Devices); n != 0 && at != "close" {
					t.Errorf("%d devices were taken while released", n)
				}
				f.Acquire()
				synctest.Wait()
				if s := f.Snapshot(context.Background()); states(t, s) != "ok" || d.opened.Load() != 2 {
					t.Errorf("taken back: %s, opened %d times", states(t, s), d.opened.Load())
				}
			})
		})
	}
}

// slowDriver does not answer at one place until it is told to.
type slowDriver struct {
	*driver
	at     string
	answer chan struct{}
}

func (d *slowDriver) wait(at string) {
	if d.at == at {
		<-d.answer
	}
}
func (d *slowDriver) Devices(ctx context.Context) ([]source.Device, error) {
	d.wait("list")
	return d.driver.Devices(ctx)
}
func (d *slowDriver) Close() error { d.wait("close"); return d.driver.Close() }

// The exporter ends though a release waits for a driver that hangs, and so does the release.
func TestReleaseDuringShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sick, answer := hung(0)
		defer close(answer)
		f := NewFeed(Config{Sources: []source.Source{(&driver{devices: []source.Device{sick, newGPU(1)}}).source("nvml")}})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { f.Run(ctx); close(ended) }()
		f.Snapshot(context.Background())
		start, released := time.Now(), make(chan error)
		go func() { released <- f.Release(patience(t, time.Minute), 0) }()
		time.Sleep(time.Second)
		cancel()
		<-ended
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("ended after %v", took)
		}
		f.Acquire() // too late for anybody
		if err := <-released; !errors.Is(err, ErrHeld) {
			t.Errorf("%v", err)
		}
	})
}
