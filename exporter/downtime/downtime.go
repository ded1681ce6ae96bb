// Package downtime counts the time in which the exporter did not run between two of its runs.
package downtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	name = "downtime"
	// every is how often the exporter writes that it runs. A run that is killed counts as ended at its last
	// write, so that up to this much is counted too many.
	every = time.Minute
	// clockSteps is how far in the future the last write may lie: the clock was set back a little. Farther,
	// the record is not believed.
	clockSteps = 24 * time.Hour
)

// earliest is before the first release. A clock that shows an earlier time is not set, and a record from
// before was not written by a machine whose clock was.
var earliest = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// Store keeps a record. A state.Store is one.
type Store interface {
	Keeps() bool
	Load(name string, into any) (bool, error)
	Save(name string, fact any) error
}

// record is what is kept.
type record struct {
	Alive   time.Time `json:"alive"`   // when the exporter ran last
	Seconds float64   `json:"seconds"` // in which it did not run, in all
}

// checked is a record that is believed only if it makes sense now.
type checked struct {
	record
	now time.Time
}

// UnmarshalJSON reads a record, and refuses one that no run can have written.
func (c *checked) UnmarshalJSON(raw []byte) error {
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	switch {
	case r.Alive.IsZero():
		return errors.New("no time of the last run")
	case r.Alive.Before(earliest):
		return fmt.Errorf("last run at %s: the clock was not set", r.Alive.Format(time.RFC3339))
	case set(c.now) && r.Alive.Sub(c.now) > clockSteps:
		return fmt.Errorf("last run at %s is in the future", r.Alive.Format(time.RFC3339))
	case r.Seconds < 0 || r.Seconds > r.Alive.Sub(earliest).Seconds():
		return fmt.Errorf("downtime of %g seconds is not possible", r.Seconds)
	}
	c.record = r
	return nil
}

// set reports whether the clock is set.
func set(now time.Time) bool { return !now.Before(earliest) }

// Downtime is the sum over all runs that kept their state in one place.
type Downtime struct {
	store   Store
	log     *slog.Logger
	seconds float64 // never changes
	failed  bool    // the last write; Run's goroutine alone touches it
}

// Open takes what earlier runs have kept. Where the clock was set back between them, or is not set, nothing
// is added.
func Open(store Store, now time.Time, log *slog.Logger) *Downtime {
	d := &Downtime{store: store, log: log}
	kept := checked{now: now}
	there, err := store.Load(name, &kept)
	switch {
	case err != nil:
		log.Warn("cannot read the downtime history; starting from zero", "err", err)
	case there:
		d.seconds = kept.Seconds
		if set(now) {
			d.seconds += max(now.Sub(kept.Alive).Seconds(), 0)
		}
	}
	return d
}

// Seconds returns the downtime, and whether it is known: it is not where no state is kept. It never waits.
func (d *Downtime) Seconds() (float64, bool) { return d.seconds, d.store.Keeps() }

// Run writes until the context ends that the exporter runs, and once more then. No lock is held meanwhile.
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

// note writes that the exporter runs now, unless the clock is not set.
func (d *Downtime) note(now time.Time) {
	if !set(now) {
		return
	}
	err := d.store.Save(name, record{now, d.seconds})
	if failed := err != nil; failed != d.failed {
		d.failed = failed
		if failed {
			d.log.Warn("cannot write the heartbeat; downtime since the last one will be counted too long", "err", err)
		} else {
			d.log.Info("the heartbeat is written again")
		}
	}
}
