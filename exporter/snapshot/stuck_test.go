package snapshot

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// scrapeFor scrapes every ten seconds for a time, and returns why the feed is stuck then.
func scrapeFor(f *Feed, d time.Duration) string {
	for end := time.Now().Add(d); time.Now().Before(end); {
		f.Snapshot(context.Background())
		time.Sleep(10*time.Second - 2*time.Second)
	}
	return strings.Join(f.Stuck(), "; ")
}

// A stage that hangs makes the feed stuck once scrapes have asked in vain for ten read timeouts; once the
// stage ends, it is not.
func TestFeed_HungStageMakesItStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := new(owning)
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{newGPU(0)}}).source("nvml")}, Stages: []Stage{o.stage()}})
		if got := scrapeFor(f, time.Hour); got != "" {
			t.Errorf("stuck while all is well: %s", got)
		}
		end := o.stall()
		if got := scrapeFor(f, 10*time.Second); got != "" {
			t.Errorf("stuck too early: %s", got)
		}
		if got := scrapeFor(f, 30*time.Second); !strings.Contains(got, "no snapshot completed for") || strings.Contains(got, "stage") {
			t.Errorf("after 40 s: %q, want that no snapshot was completed", got)
		}
		if got := scrapeFor(f, time.Minute); !strings.Contains(got, "stage owning has been running for 1m") {
			t.Errorf("after 100 s: %q, want the stage", got)
		}
		end()
		synctest.Wait()
		if got := f.Stuck(); got != nil {
			t.Errorf("stuck after the stage ended: %v", got)
		}
	})
}

// A stage that was late once does not make the feed stuck when no scrape follows for long.
func TestFeed_QuietTimeAfterALateStageIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := new(owning)
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{newGPU(0)}}).source("nvml")}, Stages: []Stage{o.stage()}})
		end := o.stall()
		f.Snapshot(context.Background())
		end()
		time.Sleep(time.Hour)
		if got := f.Stuck(); got != nil {
			t.Errorf("stuck: %v", got)
		}
	})
}

// A GPU that hangs is no reason to restart the exporter.
func TestFeed_HungDeviceDoesNotMakeItStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		g := newGPU(0)
		g.read = func(context.Context, *telemetry.Device) *metric.Reason { <-hang; return nil }
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{g, newGPU(1)}}).source("nvml")}, Stages: []Stage{new(owning).stage()}})
		if got := scrapeFor(f, 10*time.Minute); got != "" {
			t.Errorf("stuck: %s", got)
		}
		close(hang)
	})
}

// Running names a source that does not close, and the device that keeps it.
func TestFeed_RunningNamesWhatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		opening := source.Source{Name: "sim", Open: func(context.Context) (source.Reader, error) { <-hang; return nil, source.ErrAbsent }}
		f := NewFeed(Config{Sources: []source.Source{(&driver{devices: []source.Device{newGPU(0)}}).source("nvml"), opening}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { f.Run(ctx); close(ended) }()
		synctest.Wait()
		start := time.Now()
		cancel()
		<-ended
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("Run ended after %v, want twice the read timeout", took)
		}
		if got := f.Running(); !slices.Equal(got, []string{"source sim: open"}) {
			t.Errorf("running %q, want the source that opens", got)
		}
		close(hang)
		synctest.Wait()
		if got := f.Running(); got != nil {
			t.Errorf("running %q after it answered", got)
		}
	})
}
