package snapshot

import (
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// round is one reading of all devices, shared by all scrapes that wait for it.
type round struct {
	taken   time.Time
	workers []*worker
	done    chan struct{} // closed when result is set
	result  *Snapshot

	mu      sync.Mutex
	slots   []slot
	pending int
	over    bool
	all     chan struct{} // closed when nothing is pending
}

// slot is one worker's part of a round.
type slot struct {
	worker  *worker
	reading reading
}

func newRound(taken time.Time) *round {
	return &round{taken: taken, done: make(chan struct{}), all: make(chan struct{})}
}

// run asks every worker, waits for all or for the deadline, and publishes.
func (r *round) run(timeout time.Duration, publish func()) {
	r.mu.Lock()
	r.slots = make([]slot, len(r.workers))
	r.pending = len(r.workers)
	for i, w := range r.workers {
		r.slots[i] = slot{w, reading{why: metric.Late}}
		if !w.ask(request{r, i}) { // still busy with an earlier round: it hangs
			r.pending--
		}
	}
	if r.pending == 0 {
		close(r.all)
	}
	r.mu.Unlock()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	select {
	case <-r.all:
	case <-deadline.C:
	}
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	publish()
}

// put takes a worker's answer; one that comes too late is dropped with its buffer.
func (r *round) put(i int, got reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
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
