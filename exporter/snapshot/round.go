package snapshot

import (
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// round is one reading of all devices, shared by all scrapes that wait for it.
type round struct {
	taken  time.Time
	gone   absence       // when it began
	done   chan struct{} // closed when result is set
	result *Snapshot
	read   bool // its answers are in, and late ones are no longer taken; under the feed's lock

	mu      sync.Mutex
	slots   []slot
	pending int
	all     chan struct{} // closed when nothing is pending
}

// slot is one worker's part of a round.
type slot struct {
	worker   *worker
	reading  reading
	answered bool
}

// newRound has a slot for every worker from the start: a scrape that can not wait looks at once.
func newRound(taken time.Time, workers []*worker, gone absence) *round {
	r := &round{taken: taken, gone: gone, done: make(chan struct{}), all: make(chan struct{}), pending: len(workers)}
	for _, w := range workers {
		r.slots = append(r.slots, slot{worker: w, reading: reading{why: metric.Late}})
	}
	if r.pending == 0 {
		close(r.all)
	}
	return r
}

// run asks every worker, waits for all or for the deadline, and publishes.
func (r *round) run(timeout time.Duration, publish func()) {
	for i, s := range r.arrived() {
		if !s.worker.ask(request{r, i}) { // still busy with an earlier round: it hangs
			r.put(i, reading{why: metric.Late})
		}
	}
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	select {
	case <-r.all:
	case <-deadline.C:
	}
	publish()
}

// put takes a worker's answer; one that comes too late stays in the round, which nobody looks at again.
func (r *round) put(i int, got reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.slots[i].answered {
		r.slots[i].reading = got
		r.answered(i)
	}
}

// drop gives up on some workers: their devices were released.
func (r *round) drop(gone func(*worker) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.slots {
		if gone(r.slots[i].worker) {
			r.slots[i].reading = reading{why: metric.Released}
			r.answered(i)
		}
	}
}

// answered is called under the lock.
func (r *round) answered(i int) {
	if r.slots[i].answered {
		return
	}
	r.slots[i].answered = true
	if r.pending--; r.pending == 0 {
		close(r.all)
	}
}

// arrived returns what is there now; a worker that has not answered is late.
func (r *round) arrived() []slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]slot(nil), r.slots...)
}
