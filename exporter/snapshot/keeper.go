package snapshot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// keeper holds one source open, keeps a worker for each device it lists, and opens it again when
// its driver comes back.
type keeper struct {
	src     source.Source
	cfg     *Config
	devices *registry
	ledger  *ledger
	hold    *hold // nil: it has no devices to let go of
	log     *slog.Logger

	mu       sync.Mutex
	state    telemetry.SourceState
	err      error
	workers  []*worker
	inside   chan struct{} // closed when nothing of the driver is held any more; nil: nothing is
	doing    string        // in the driver; empty: nothing
	draining []*worker     // that were stopped and may still be in the driver
	stuck    bool          // draining takes longer than a device may
	away     bool          // it let go of its devices on request, and has not tried to open again

	// run's goroutine alone touches these.
	served  bool          // it has listed its devices
	since   time.Time     // when it first did after it was opened last; zero: it has not
	pause   time.Duration // before it is opened again
	refused map[string]error

	// Workers of devices no longer listed that may still be in the driver; serve's goroutine alone touches it.
	leaving map[any]*worker
}

var errStarting = errors.New("being opened")

func (f *Feed) newKeeper(s source.Source) *keeper {
	k := &keeper{
		src: s, cfg: &f.cfg, devices: &f.devices, ledger: f.ledger, log: f.cfg.Logger.With("source", s.Name),
		state: telemetry.SourceStateFailed, err: errStarting, leaving: map[any]*worker{},
	}
	if lends(s.Name) {
		k.hold = &f.hold
	}
	return k
}

// run opens the source, and again whenever it is lost or taken back. It calls tried once the first
// attempt has ended.
func (k *keeper) run(ctx context.Context, tried func()) {
	for ctx.Err() == nil {
		term, back := k.enter(ctx)
		if term == nil {
			tried()
			select {
			case <-back:
			case <-ctx.Done():
			}
			continue
		}
		var reader source.Reader
		k.since = time.Time{}
		err := k.call("open", func() (err error) { reader, err = k.src.Open(term); return err })
		if err == nil {
			err = k.serve(term, reader, tried)
		} else {
			k.fail(term, err)
		}
		if k.served && errors.Is(err, source.ErrStale) && k.cfg.Stale != nil {
			k.cfg.Stale(k.src.Name, err)
		}
		tried()
		k.leave()
		if errors.Is(err, source.ErrUnbuilt) {
			return
		}
		if term, _ := k.hold.look(ctx); term != nil {
			sleep(term, k.backoff())
		}
	}
}

// firstRetry is the time after which a source that has served is opened again.
const firstRetry = time.Second

// backoff returns the time until the source is opened again. A source that was never there is tried every
// Retry. One that served is tried soon, and then at twice the time up to Retry until it has served for as
// long as that: a driver that fails right after it was opened is not opened every second.
func (k *keeper) backoff() time.Duration {
	switch {
	case !k.served:
		return k.cfg.Retry
	case k.pause == 0, !k.since.IsZero() && time.Since(k.since) >= k.cfg.Retry:
		k.pause = firstRetry
	default:
		k.pause *= 2
	}
	k.pause = min(k.pause, k.cfg.Retry)
	return k.pause
}

// serve reads the devices until listing them fails, they are released or the context ends, and closes the
// source. One that is taken back before it could be closed goes on: a device that hangs must not
// keep the others from being read.
func (k *keeper) serve(term context.Context, reader source.Reader, tried func()) (err error) {
	for term != nil {
		err = k.list(term, reader, tried)
		term = k.drain(term, err)
	}
	if err := k.call("close", reader.Close); err != nil {
		k.log.Warn("source did not close", "err", err)
	}
	return err
}

// list lists the devices again and again, until that fails or the term ends.
func (k *keeper) list(term context.Context, reader source.Reader, tried func()) error {
	k.readOthers(term, reader)
	var changed <-chan struct{}
	if n, ok := reader.(source.Notifier); ok {
		changed = n.Changed()
	}
	for term.Err() == nil {
		var devices []source.Device
		err := k.call("list devices", func() (err error) { devices, err = reader.Devices(term); return err })
		if err != nil {
			err = fmt.Errorf("list devices: %w", err)
			k.fail(term, err) // now, since closing may take as long as a device hangs
			return err
		}
		if k.served = true; k.since.IsZero() {
			k.since = time.Now()
		}
		if term.Err() == nil { // else it ended meanwhile
			k.adopt(term, devices)
			tried()
		}
		sleepUnless(term, k.cfg.Relist, changed)
	}
	return nil
}

// readOthers starts the workers of what is no device.
func (k *keeper) readOthers(term context.Context, reader source.Reader) {
	var all []*worker
	if h, ok := reader.(source.HostReader); ok {
		all = append(all, hostWorker(k.src.Name, h, k.log))
	}
	if e, ok := reader.(source.EngineReader); ok {
		all = append(all, engineWorker(k.src.Name, e, k.log))
	}
	for _, w := range all {
		k.start(term, w)
	}
	k.set(func() { k.workers = all })
}

// start starts a worker, which waits for the one that had its device before.
func (k *keeper) start(ctx context.Context, w *worker) {
	w.took = func(d time.Duration) { k.ledger.observe(k.src.Name, d) }
	w.start(ctx, k.leaving[w.of()])
	delete(k.leaving, w.of())
}

func (k *keeper) dismiss(w *worker) {
	w.stop()
	k.devices.leave(w.known)
}

// call runs what may hang or panic in the source's code. It marks the source as failed while it
// takes longer than a device may.
func (k *keeper) call(doing string, f func() error) error {
	over := false // under the lock
	k.set(func() { k.doing = doing })
	t := time.AfterFunc(k.cfg.Timeout, func() {
		k.set(func() {
			if over {
				return
			}
			k.state, k.err, k.away = telemetry.SourceStateFailed, fmt.Errorf("%s: no answer for %v", doing, k.cfg.Timeout), false
			k.log.Warn("source does not answer", "doing", doing, "for", k.cfg.Timeout)
		})
	})
	defer k.set(func() {
		t.Stop()
		over, k.doing = true, ""
	})
	return guard(k.log, doing, f)
}

// fail notes why the source does not serve, and logs it when that is new.
func (k *keeper) fail(ctx context.Context, err error) {
	if ctx.Err() != nil || err == nil {
		return
	}
	state, level := telemetry.SourceStateFailed, slog.LevelWarn
	switch {
	case errors.Is(err, source.ErrAbsent):
		state, level = telemetry.SourceStateAbsent, slog.LevelInfo
	case errors.Is(err, source.ErrUnbuilt):
		state, level = telemetry.SourceStateUnbuilt, slog.LevelInfo
	}
	k.set(func() {
		if k.err == nil || k.err.Error() != err.Error() {
			k.log.Log(ctx, level, "source not serving", "state", state, "err", err)
		}
		k.state, k.err, k.away = state, err, false
	})
}

func (k *keeper) set(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// current returns the workers there are now.
func (k *keeper) current() []*worker {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]*worker(nil), k.workers...)
}

func (k *keeper) health() SourceHealth {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := SourceHealth{Name: k.src.Name, State: k.state}
	if k.err != nil {
		h.Err = k.err.Error()
	}
	h.Devices = devicesOf(k.workers)
	return h
}

// devicesOf is how many of the workers read a device.
func devicesOf(workers []*worker) (n int) {
	for _, w := range workers {
		if w.device != nil {
			n++
		}
	}
	return n
}

func sleep(ctx context.Context, d time.Duration) { sleepUnless(ctx, d, nil) }

// sleepUnless sleeps that long, or until wake delivers or the context ends.
func sleepUnless(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-t.C:
	}
}
