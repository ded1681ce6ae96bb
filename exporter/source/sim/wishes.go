package sim

import (
	"math"
	"slices"
	"sync"
	"time"
)

// wishes are the faults that a node is asked for, by its description and while it runs. When each
// began and ended is kept, so that a board that is opened again lives through the same.
type wishes struct {
	now func() Faults // nil: nothing is asked for while the node runs

	mu   sync.Mutex
	all  asks  // those given out do not change
	live []int // which of them are asked for while the node runs, and have no end yet
	tick int64 // since the driver was loaded, when that was last looked at
}

func newWishes(described asks, now func() Faults) *wishes {
	return &wishes{now: now, all: described, tick: -1}
}

// look tells what is asked for until a tick. What is asked for now holds since it was last looked at.
func (w *wishes) look(tick int64) asks {
	if w.now == nil {
		return w.all
	}
	now := w.now() // reads a file
	w.mu.Lock()
	defer w.mu.Unlock()
	since := time.Duration(w.tick+1) * time.Second
	w.tick = max(w.tick, tick)
	var ended []int
	for _, i := range w.live {
		if one := w.all[i].trouble; now.has(one) {
			now &^= 1 << one
		} else {
			ended = append(ended, i)
		}
	}
	if now == 0 && ended == nil {
		return w.all
	}
	w.all = slices.Clone(w.all)
	w.live = slices.DeleteFunc(w.live, func(i int) bool { return slices.Contains(ended, i) })
	for _, i := range ended {
		w.all[i].to = since
	}
	for one := range trouble(len(troubleNames())) {
		if now.has(one) {
			w.live = append(w.live, len(w.all))
			w.all = append(w.all, asked{trouble: one, from: since, to: math.MaxInt64})
		}
	}
	return w.all
}

// strikes are the faults of devices that hit each board of a node: the first that can have it, and
// idleness all boards of the first job.
func strikes(slots []slot) []Faults {
	all := make([]Faults, len(slots))
	var met Faults
	for i, s := range slots {
		can := Faults(1 << gpuHot)
		if s.board.vendor == nvidia {
			can |= 1 << gpuXID
		}
		if s.board.ecc {
			can |= 1 << gpuECC
		}
		all[i] = can &^ met
		met |= can
		if s.entry == slots[0].entry && s.job == slots[0].job {
			all[i] |= 1 << gpuIdle
		}
	}
	return all
}

// suffered is what a board suffers of what its node is asked for.
type suffered struct {
	asks asks
	by   Faults // which of them hit it
}

// at are the faults that hold in a tick since the driver was loaded.
func (s *suffered) at(tick int64) Faults {
	if s.by == 0 {
		return 0
	}
	return s.asks.at(time.Duration(tick)*time.Second) & s.by
}

// between tells the first tick from one to another, the last not included, in which one of some
// faults holds; the last when none does.
func (s *suffered) between(from, to int64, some Faults) int64 {
	for _, a := range s.asks {
		if (s.by & some).has(a.trouble) {
			if first := max(from, a.first()); first < a.end() {
				to = min(to, first)
			}
		}
	}
	return to
}

// again is after how many ticks an event comes again while its fault lasts.
const again = 60

// events is how often one of some faults brought its event until a tick, and the last time it did.
func (s *suffered) events(some Faults, tick int64) (n, last int64) {
	for _, a := range s.asks {
		if !(s.by & some).has(a.trouble) || tick < a.first() || a.first() >= a.end() {
			continue
		}
		more := (min(tick, a.end()-1) - a.first()) / again
		n += 1 + more
		last = max(last, a.first()+more*again)
	}
	return n, last
}

// first is the first tick in which the fault holds, and end the first in which it does not any more.
func (a asked) first() int64 { return ticksUntil(a.from) }
func (a asked) end() int64   { return ticksUntil(a.to) }

// ticksUntil rounds up: a tick is what holds at its beginning.
func ticksUntil(t time.Duration) int64 {
	n := int64(t / time.Second)
	if t%time.Second > 0 {
		n++
	}
	return n
}
