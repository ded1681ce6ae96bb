package snapshot

import (
	"log/slog"
	"sync"
	"time"
)

// Stage adds to a snapshot before it is published, such as the owners of devices.
type Stage struct {
	Name string // in logs, and as the source of its faults
	// Run completes a snapshot. The feed runs its stages in order and on one snapshot at a time, oldest
	// first, and holds no lock meanwhile. Run may read files. A scrape does not wait for one that hangs.
	Run func(*Snapshot)
	// Partial completes a snapshot for a scrape that cannot wait for Run. It carries over what Run added to
	// last, the newest snapshot that all stages have completed, nil before the first. It is called while Run
	// may be at work, and at the same time as itself: it must not wait, count anything or change last. Nil:
	// the stage adds nothing to such a snapshot.
	Partial func(s, last *Snapshot)
}

// stages runs the stages of a feed.
type stages struct {
	all      []Stage
	patience time.Duration // after which a snapshot is published without them
	fault    func(Fault)
	log      *slog.Logger
	turn     chan struct{} // holds an entry while stages are at work

	mu    sync.Mutex
	last  *Snapshot // the newest completed
	at    string    // the stage at work
	began time.Time // when that stage began; zero: none is at work
	asked time.Time // when the first scrape since the newest completed snapshot asked for one; zero: none has
	late  bool      // and that was logged
}

func newStages(cfg *Config, fault func(Fault)) *stages {
	return &stages{all: cfg.Stages, patience: cfg.Timeout, fault: fault, log: cfg.Logger, turn: make(chan struct{}, 1)}
}

// complete runs all stages on a snapshot and reports whether they are done with it in time. If not, they go
// on, and the caller must not touch the snapshot any more; until they end, no other is completed.
func (x *stages) complete(s *Snapshot) bool {
	late := time.NewTimer(x.patience)
	defer late.Stop()
	select {
	case x.turn <- struct{}{}:
	case <-late.C:
		x.overdue()
		return false
	}
	if last := x.newest(); last != nil && last.Health.Reads > s.Health.Reads { // a newer one came first, after a release
		<-x.turn
		return false
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.run(s)
		<-x.turn
	}()
	select {
	case <-done:
		return true
	case <-late.C:
		x.overdue()
		return false
	}
}

func (x *stages) run(s *Snapshot) {
	for i := range x.all {
		stage := &x.all[i]
		x.set(func() { x.at, x.began = stage.Name, time.Now() })
		if guard(x.log, stage.Name, func() error { stage.Run(s); return nil }) != nil { // the rest of the snapshot stands
			x.fault(Fault{Source: stage.Name, Metric: "*", Reason: panicked.Text})
		}
	}
	x.set(func() {
		x.last, x.began, x.asked = s, time.Time{}, time.Time{}
		if x.late {
			x.late = false
			x.log.Info("stages complete snapshots again")
		}
	})
}

// partial completes a snapshot with what the stages added to the newest that they have completed.
func (x *stages) partial(s *Snapshot) {
	last := x.newest()
	for i := range x.all {
		if stage := &x.all[i]; stage.Partial != nil {
			guard(x.log, stage.Name, func() error { stage.Partial(s, last); return nil }) //nolint:errcheck // it is logged; the rest of the snapshot stands
		}
	}
}

// overdue counts and, once, logs that a snapshot is published without the stages' work on it.
func (x *stages) overdue() {
	var at string
	x.set(func() {
		at = x.at
		if !x.late {
			x.late = true
			x.log.Warn("a stage does not end; scrapes get the owners and workloads of the snapshot before", "stage", at, "for", x.patience)
		}
	})
	x.fault(Fault{Source: at, Metric: "*", Reason: "late"})
}

// newest returns the newest snapshot that all stages have completed, nil before the first.
func (x *stages) newest() (last *Snapshot) {
	x.set(func() { last = x.last })
	return last
}

func (x *stages) set(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f()
}
