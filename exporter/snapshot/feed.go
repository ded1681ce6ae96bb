package snapshot

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/parts"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Config says what a Feed reads and how patient it is. Zero durations take the defaults.
type Config struct {
	Sources  []source.Source
	Stages   []Stage
	Devices  func(*telemetry.Identity) bool // which are read; nil: all
	Expected func() Expected                // asked once the sources have listed theirs, and at each Relist; may be nil
	Stale    func(source string, err error) // told of a source that was open before and now gives source.ErrStale; may be nil
	MaxAge   time.Duration                  // a picture no older is served again; default 1 s, negative: never again
	Timeout  time.Duration                  // after which a device is late; default 2 s
	Relist   time.Duration                  // how often devices are listed again; default 30 s
	Retry    time.Duration                  // how often a source that is not there is tried again, and the most after a failure of one that was; default 30 s
	Hold     time.Duration                  // for which a new fault counter is exposed as 0; default 30 s, negative: not at all
	Now      func() time.Time
	Logger   *slog.Logger
}

// Feed takes pictures of the node. It asks workers, one per device, and never waits for one past
// the deadline; scrapes that come together share one picture.
type Feed struct {
	cfg     Config
	keepers []*keeper
	devices registry
	hold    hold
	tried   chan struct{} // closed when every source has been tried, or has been too slow
	ledger  *ledger
	stages  *stages
	running parts.Group // what Run has started

	mu    sync.Mutex // never held while a source, a stage or a file is waited for
	last  *Snapshot  // the newest, if all stages have completed it
	round *round     // that scrapes wait for; nil: none
}

// NewFeed returns a feed that reads nothing until Run is called.
func NewFeed(cfg Config) *Feed {
	for _, d := range []struct {
		value *time.Duration
		std   time.Duration
	}{
		{&cfg.MaxAge, time.Second}, {&cfg.Timeout, 2 * time.Second}, {&cfg.Relist, 30 * time.Second}, {&cfg.Retry, 30 * time.Second},
		{&cfg.Hold, 30 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.std
		}
	}
	if cfg.Devices == nil {
		cfg.Devices = func(*telemetry.Identity) bool { return true }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Feed{cfg: cfg, tried: make(chan struct{}), ledger: newLedger(cfg.Hold)}
	f.stages = newStages(&f.cfg, func(fault Fault) { f.ledger.fault(cfg.Now(), fault) })
	f.devices.chosen = cfg.Devices
	for _, s := range cfg.Sources {
		f.devices.sources = append(f.devices.sources, s.Name)
		f.keepers = append(f.keepers, f.newKeeper(s))
	}
	return f
}

// Run keeps the sources open, and runs what they do in the background, until the context ends, and
// then closes them. A source that does not return within twice the read timeout is left open: it must
// not keep the process from ending. Running names it.
func (f *Feed) Run(ctx context.Context) {
	f.hold.start(ctx)
	var tried sync.WaitGroup
	for _, k := range f.keepers {
		tried.Add(1)
		f.running.GoNamed(k.unended, func() { k.run(ctx, sync.OnceFunc(tried.Done)) })
		if background := k.src.Run; background != nil {
			f.running.Go("source "+k.src.Name+": background", func() {
				guard(k.log, "run", func() error { background(ctx); return nil }) //nolint:errcheck // it is logged; the source is read all the same
			})
		}
	}
	all, expected := make(chan struct{}), make(chan struct{})
	go func() { tried.Wait(); close(all) }()
	f.running.Go("expected devices", func() { f.expect(ctx, all, sync.OnceFunc(func() { close(expected) })) })
	go func() { // what hangs then must not hold up the first scrape for ever
		f.wait(ctx, all)
		f.wait(ctx, expected)
		close(f.tried)
	}()
	<-ctx.Done()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*f.cfg.Timeout) // once for the devices, once for the source itself
	defer cancel()
	f.running.Wait(closing)
}

// Running returns what Run has started and has not ended: sources and what each does, sorted.
func (f *Feed) Running() []string { return f.running.Running() }

// wait waits as long as a device may take.
func (f *Feed) wait(ctx context.Context, done <-chan struct{}) {
	late := time.NewTimer(f.cfg.Timeout)
	defer late.Stop()
	select {
	case <-done:
	case <-ctx.Done():
	case <-late.C:
	}
}

// Snapshot returns a snapshot no older than the maximum age. When the context ends first, or the
// stages take longer than a device may, it returns what is known by then, marked Partial. It is never nil.
func (f *Feed) Snapshot(ctx context.Context) *Snapshot {
	select {
	case <-f.tried:
	case <-ctx.Done():
		if !f.Started() { // no device has been asked
			return f.partial(newRound(f.cfg.Now(), nil, absence{}))
		}
	}
	r, fresh := f.join()
	if fresh != nil {
		return fresh
	}
	select {
	case <-r.done:
		return r.result
	case <-ctx.Done():
		return f.partial(r)
	}
}

// Sources tells how each source is.
func (f *Feed) Sources() []SourceHealth {
	var out []SourceHealth
	for _, k := range f.keepers {
		out = append(out, k.health())
	}
	return out
}

// Started says whether every source has been tried.
func (f *Feed) Started() bool {
	select {
	case <-f.tried:
		return true
	default:
		return false
	}
}

// join returns the last picture if it is fresh, else the round in flight, starting one if there is none.
func (f *Feed) join() (*round, *Snapshot) {
	now := f.cfg.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil || now.Sub(f.last.Taken) > f.cfg.MaxAge {
		f.stages.ask()
	}
	if f.round != nil {
		return f.round, nil
	}
	if f.last != nil && now.Sub(f.last.Taken) <= f.cfg.MaxAge && !now.Before(f.last.Taken) {
		return nil, f.last
	}
	workers, gone := f.look()
	r := newRound(now, workers, gone)
	f.round = r
	go r.run(f.cfg.Timeout, func() { f.publish(r) })
	return r, nil
}
