package snapshot

import (
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// round is one reading of all devices, shared by all scrapes that wait for it.
type round struct {
	taken  time.Time
	done   chan struct{} // closed when result is set
	result *Snapshot

	mu      sync.Mutex
	slots   []slot
	pending int
	all     chan struct{} // closed when nothing is pending
}

// slot is one worker's part of a round.
type slot struct {
	worker  *worker
	reading reading
}

// newRound has a slot for every worker from the start: a scrape that can not wait looks at once.
func newRound(taken time.Time, workers []*worker) *round {
	r := &round{taken: taken, done: make(chan struct{}), all: make(chan struct{}), pending: len(workers)}
	for _, w := range workers {
		r.slots = append(r.slots, slot{w, reading{why: metric.Late}})
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
	r.slots[i].reading = got
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
