// Package downtime counts the time in which the exporter did not run between two of its runs.
package downtime

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/state"
)

const (
	name = "downtime"
	// every is how often it is noted that the exporter runs. A run that is killed is thought to have ended
	// when that was last noted, so that up to this much is counted too many.
	every = time.Minute
)

// record is what is kept.
type record struct {
	Alive   time.Time `json:"alive"`   // when the exporter ran last
	Seconds float64   `json:"seconds"` // in which it did not run, in all
}

// Downtime is the sum over all runs that kept their state in one place.
type Downtime struct {
	store state.Store
	log   *slog.Logger

	mu      sync.Mutex
	seconds float64
	failed  bool // noting it; said once
}

// Open takes what earlier runs have kept. Where the clock was set back between them nothing is added.
func Open(store state.Store, now time.Time, log *slog.Logger) *Downtime {
	d := &Downtime{store: store, log: log}
	var kept record
	there, err := store.Load(name, &kept)
	switch {
	case err != nil:
		log.Warn("for how long the exporter did not run before is forgotten; it is counted from now on", "err", err)
	case there:
		d.seconds = max(kept.Seconds, 0) + max(now.Sub(kept.Alive).Seconds(), 0)
	}
	return d
}

// Seconds tells it, and whether it is known: nothing is where no state is kept.
func (d *Downtime) Seconds() (float64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seconds, d.store.Keeps()
}

// Run notes until the context ends that the exporter runs.
func (d *Downtime) Run(ctx context.Context) {
	if !d.store.Keeps() {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		d.note(time.Now())
		select {
		case <-ctx.Done():
			d.note(time.Now())
			return
		case <-tick.C:
		}
	}
}

func (d *Downtime) note(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.store.Save(name, record{now, d.seconds})
	if failed := err != nil; failed != d.failed {
		d.failed = failed
		if failed {
			d.log.Warn("that the exporter runs can not be noted", "err", err)
		} else {
			d.log.Info("that the exporter runs is noted again")
		}
	}
}
