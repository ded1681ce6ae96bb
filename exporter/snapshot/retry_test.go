package snapshot

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/source"
)

// opens notes when a source is opened, in seconds since the start.
type opens struct {
	*driver
	begin time.Time
	at    []float64
}

func (o *opens) source() source.Source {
	src := o.driver.source("nvml")
	open := src.Open
	src.Open = func(ctx context.Context) (source.Reader, error) {
		o.set(func() { o.at = append(o.at, time.Since(o.begin).Seconds()) })
		return open(ctx)
	}
	return src
}

// since returns when the source was opened after an instant, in seconds from there.
func (o *opens) since(begin time.Time) (out []float64) {
	o.set(func() {
		for _, at := range o.at {
			if at -= begin.Sub(o.begin).Seconds(); at > 0 {
				out = append(out, at)
			}
		}
	})
	return out
}

func TestFeed_SourceThatServedIsOpenedAgainSoon(t *testing.T) {
	for name, why := range map[string]error{"failed": errors.New("driver unloaded"), "absent": source.ErrAbsent} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &opens{driver: &driver{devices: []source.Device{newGPU(0)}}, begin: time.Now()}
				run(t, Config{Sources: []source.Source{o.source()}, Relist: time.Second})
				time.Sleep(5*time.Minute + time.Second/2) // devices are listed at each full second
				for range 2 {                             // the second failure begins with the short pause again
					lost := time.Now().Truncate(time.Second).Add(time.Second)
					o.set(func() { o.listErr, o.openErr = why, why })
					time.Sleep(time.Until(lost) + 2*time.Minute + time.Second/2)
					if got, want := o.since(lost), []float64{1, 3, 7, 15, 31, 61, 91}; !slices.Equal(got, want) {
						t.Errorf("opened %v s after it was lost, want %v", got, want)
					}
					o.set(func() { o.listErr, o.openErr = nil, nil })
					time.Sleep(10 * time.Minute)
				}
			})
		})
	}
}

func TestFeed_SourceThatWasNeverThereIsTriedEveryRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &opens{driver: &driver{openErr: source.ErrAbsent}, begin: time.Now()}
		run(t, Config{Sources: []source.Source{o.source()}})
		time.Sleep(95 * time.Second)
		if got, want := o.since(o.begin.Add(-1)), 4; len(got) != want || got[1]-got[0] < 29 {
			t.Errorf("opened at %v s, want every 30 s", got)
		}
	})
}

// A driver that lists its devices once each time it is opened, and fails right after, must not be opened
// every second.
func TestFeed_SourceThatFailsSoonAfterOpeningIsNotOpenedEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &opens{driver: &driver{devices: []source.Device{newGPU(0)}}, begin: time.Now()}
		src, lists := o.source(), 0
		open := src.Open
		src.Open = func(ctx context.Context) (source.Reader, error) {
			_, err := open(ctx)
			lists = 0
			return &flaky{o.driver, &lists}, err
		}
		run(t, Config{Sources: []source.Source{src}, Relist: time.Second})
		time.Sleep(10 * time.Minute)
		if n := len(o.since(o.begin.Add(-1))); n > 30 {
			t.Errorf("opened %d times in 10 minutes, want at most about one each 30 s", n)
		}
	})
}

// flaky lists its devices once.
type flaky struct {
	*driver
	lists *int
}

func (f *flaky) Devices(ctx context.Context) ([]source.Device, error) {
	if *f.lists++; *f.lists > 1 {
		return nil, errors.New("gone again")
	}
	return f.driver.Devices(ctx)
}
