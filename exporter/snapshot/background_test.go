package snapshot

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/source"
)

// A source's Run outlives every release and every Open, is started once and ends with the feed.
func TestFeed_RunsASourceInBackgroundForItsWholeLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts, ends atomic.Int64
		d := &driver{devices: []source.Device{newGPU(0)}, openErr: source.ErrAbsent}
		src := d.source("nvml")
		src.Run = func(ctx context.Context) {
			starts.Add(1)
			<-ctx.Done()
			ends.Add(1)
		}
		f := NewFeed(Config{Sources: []source.Source{src}})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { f.Run(ctx); close(done) }()
		synctest.Wait()
		if starts.Load() != 1 {
			t.Errorf("started %d times before the driver is there, want 1", starts.Load())
		}
		d.set(func() { d.openErr = nil })
		time.Sleep(minute)
		for range 3 {
			if err := f.Release(context.Background(), 0); err != nil {
				t.Fatal(err)
			}
			f.Acquire()
			synctest.Wait()
		}
		if starts.Load() != 1 || ends.Load() != 0 || d.opened.Load() != 4 {
			t.Errorf("started %d times, ended %d times, while the source was opened %d times; want 1, 0, 4", starts.Load(), ends.Load(), d.opened.Load())
		}
		cancel()
		<-done
		if ends.Load() != 1 {
			t.Errorf("ended %d times with the feed, want 1", ends.Load())
		}
	})
}

func TestFeed_PanicInABackgroundRunCostsNoReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := (&driver{devices: []source.Device{newGPU(0)}}).source("nvml")
		src.Run = func(context.Context) { panic("a mistake in a source") }
		f := run(t, Config{Sources: []source.Source{src}})
		if got := states(t, f.Snapshot(context.Background())); got != "ok" {
			t.Errorf("device is %q, want ok", got)
		}
	})
}

func TestFeed_HungBackgroundRunDoesNotKeepTheFeedFromEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		defer close(hang)
		src := (&driver{devices: []source.Device{newGPU(0)}}).source("nvml")
		src.Run = func(context.Context) { <-hang }
		f := NewFeed(Config{Sources: []source.Source{src}})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { f.Run(ctx); close(done) }()
		synctest.Wait()
		cancel()
		start := time.Now()
		<-done
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("the feed ended after %v, want at most twice the read timeout", took)
		}
	})
}
