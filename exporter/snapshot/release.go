package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// How long devices are released for.
const (
	DefaultRelease = 15 * time.Minute // when no time is said
	MaxRelease     = 24 * time.Hour   // so that a release that was forgotten ends
)

// ErrHeld says that devices could not be let go of.
var ErrHeld = errors.New("still held")

// Release is how letting go of the devices stands.
type Release struct {
	Until   time.Time // when they are taken back; zero: they are not released
	Sources []string  // that have let go
	Devices []string  // they have let go of, by UUID, or PCI address where there is none
	Holding []string  // what hangs in a driver that therefore is held: a source and its device, or what it does
}

// lends reports whether a source reads devices or parts of them, and so has to release them on request.
func lends(source string) bool {
	of := telemetry.NewDeviceMetrics(func(d *metric.Desc) bool { return slices.Contains(d.Sources, source) })
	return len(of.Descs()) > 0
}

// Release closes every source that reads devices, so that nothing of their drivers is held: they can
// be unloaded, and devices reset or divided anew. It waits until that is done or the context ends;
// then the error is an ErrHeld that names what hangs, and the rest happens when its driver answers.
// The sources stay closed until Acquire, or until the time has passed: 0 means DefaultRelease, and a
// release during a release can make it longer, not shorter.
func (f *Feed) Release(ctx context.Context, d time.Duration) error {
	if d == 0 {
		d = DefaultRelease
	}
	if d < 0 || d > MaxRelease {
		return fmt.Errorf("release for %v: not between 0 and %v", d, MaxRelease)
	}
	f.release(d)
	_, back := f.hold.released()
	for _, k := range f.keepers {
		if k.hold == nil {
			continue
		}
		select {
		case <-k.left():
		case <-ctx.Done():
		case <-back:
		}
	}
	held := f.Released().Holding
	select {
	case <-back:
		return fmt.Errorf("%w: taken back meanwhile", ErrHeld)
	default:
	}
	if len(held) > 0 {
		return fmt.Errorf("%w: no answer from %s", ErrHeld, strings.Join(held, ", "))
	}
	return nil
}

// release ends the term. Nobody waits for what the devices were asked before.
func (f *Feed) release(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	until := f.hold.release(d, func() { f.acquire(true) })
	f.forget()
	if f.round != nil {
		f.round.drop(func(w *worker) bool { return lends(w.source) })
	}
	f.cfg.Logger.Info("devices are released", "until", until)
}

// Acquire opens the released sources again, at once.
func (f *Feed) Acquire() { f.acquire(false) }

func (f *Feed) acquire(expired bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hold.acquire(expired) {
		f.forget()
		f.cfg.Logger.Info("devices are taken back", "expired", expired)
	}
}

// Released says how a release stands.
func (f *Feed) Released() Release {
	until, _ := f.hold.released()
	r := Release{Until: until}
	if until.IsZero() {
		return r
	}
	for _, k := range f.keepers {
		if k.hold == nil || k.health().State == telemetry.SourceStateUnbuilt {
			continue
		}
		if held := k.holding(); len(held) > 0 {
			r.Holding = append(r.Holding, held...)
		} else {
			r.Sources = append(r.Sources, k.src.Name)
		}
	}
	r.Devices = f.devices.only(r.Sources)
	return r
}
