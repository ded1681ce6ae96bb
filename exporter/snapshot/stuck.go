package snapshot

import (
	"fmt"
	"time"
)

const (
	// stageLimit is how long a stage may run before the feed is stuck.
	stageLimit = time.Minute
	// snapshotLimit is how many read timeouts, and snapshotLeast at least, scrapes may ask for a snapshot without one
	// being completed before the feed is stuck.
	snapshotLimit = 10
	snapshotLeast = 10 * time.Second
)

// Stuck returns why the feed no longer completes snapshots; nil: it does, or no scrape has asked. Devices and
// providers of owners that hang do not make it stuck: a snapshot is completed without what they would add.
func (f *Feed) Stuck() []string {
	return f.stages.stuck(max(snapshotLimit*f.cfg.Timeout, snapshotLeast))
}

// ask notes that a scrape asks for a snapshot.
func (x *stages) ask() {
	x.set(func() {
		if x.asked.IsZero() {
			x.asked = time.Now()
		}
	})
}

// stuck returns why no snapshot is completed.
func (x *stages) stuck(limit time.Duration) (why []string) {
	x.set(func() {
		if ran := since(x.began); ran > stageLimit {
			why = append(why, fmt.Sprintf("stage %s has been running for %v", x.at, ran))
		}
		if waited := since(x.asked); waited > limit {
			why = append(why, fmt.Sprintf("no snapshot completed for %v although scrapes asked for one", waited))
		}
	})
	return why
}

// since returns the time that has passed, in whole seconds; 0 since the zero time.
func since(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return time.Since(t).Round(time.Second)
}
