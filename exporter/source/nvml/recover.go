//go:build cgo

package nvml

import (
	"cmp"
	"context"
	"time"
)

// recovery decides when the session is renewed. NVML finds a device that came later, or was lost and is
// back, only when it is initialised again, which interrupts the reading of all others. So that is done only
// when another process has shown that it succeeds, how long it takes, and that it finds such a device.
// Devices alone touches it.
type recovery struct {
	probe   func(context.Context) (*probe, error) // nil: there is no other process
	budget  time.Duration                         // Init may take as long while another device is read
	first   time.Duration                         // pause between the first two probes; 0: firstProbe
	pause   time.Duration                         // until the next; 0: no device is missing
	next    time.Time                             // when the next may be
	running bool
	result  chan *probe   // of the probe that runs: what it found, or nil
	changed chan struct{} // Devices is to be called again
}

// Pauses between two probes, doubled while nothing is found.
const (
	firstProbe = 30 * time.Second
	lastProbe  = 10 * time.Minute
)

func newRecovery(cfg Config) recovery {
	return recovery{probe: cfg.prober(), budget: cfg.Timeout / 2, first: cfg.Retry, result: make(chan *probe, 1), changed: make(chan struct{}, 1)}
}

// Changed delivers when a missing device can be recovered: Devices then does so.
func (r *reader) Changed() <-chan struct{} { return r.again.changed }

// recover renews the session when a probe has found a missing device, and otherwise starts a probe when
// there is evidence that one is back. It returns an error when the library cannot be initialised.
func (r *reader) recover() error {
	a := &r.again
	if found, done := a.take(); done && found != nil {
		defer found.release()
		return r.renew(found.why)
	}
	why, now := r.evidence(), r.now()
	if why == "" || r.hanging {
		a.pause = 0
		return nil
	}
	if a.pause == 0 { // it may answer again by itself
		a.pause, a.next = cmp.Or(a.first, firstProbe), now
		return nil
	}
	if a.running || now.Before(a.next) {
		return nil
	}
	a.next = now.Add(a.pause)
	a.pause = min(2*a.pause, lastProbe)
	healthy := r.healthy()
	if a.probe == nil {
		if len(healthy) > 0 {
			return nil
		}
		return r.renew(why)
	}
	a.running = true
	r.background.Go(func() {
		found := r.search(healthy)
		if found != nil {
			found.why = why
		}
		a.result <- found
		if found != nil {
			select {
			case a.changed <- struct{}{}:
			default: // Devices is about to be called
			}
		}
	})
	return nil
}

// take returns the result of the probe, and whether one has ended.
func (a *recovery) take() (found *probe, done bool) {
	if !a.running {
		return nil, false
	}
	select {
	case found = <-a.result:
		a.running = false
		return found, true
	default:
		return nil, false
	}
}

// healthy returns the UUIDs of the devices that answer.
func (r *reader) healthy() map[string]bool {
	out := map[string]bool{}
	for _, h := range r.handles {
		if h.healthy() {
			out[h.identity.UUID] = true
		}
	}
	return out
}

// search initialises NVML in another process. It returns that process, which keeps the devices initialised,
// when a renewal brings a device back and costs no other; otherwise nil.
func (r *reader) search(healthy map[string]bool) *probe {
	found, err := r.again.probe(r.life)
	if err != nil {
		r.log.Debug("a missing device is not recovered: NVML cannot be initialised by a new process", "err", err)
		return nil
	}
	if !found.adds(healthy) {
		r.log.Debug("a missing device is not recovered: a new process does not find it either", "devices", len(found.uuids))
		found.release()
		return nil
	}
	if len(healthy) == 0 || found.init <= r.again.budget {
		return found
	}
	// What takes long may be that devices are initialised which no process held. The first one holds them now.
	again, err := r.again.probe(r.life)
	if err == nil {
		again.release()
	}
	if err != nil || again.init > r.again.budget || !again.adds(healthy) {
		r.log.Warn("a device is back, but reading it means not to read the others for longer than a scrape waits; release and acquire the devices, or restart gpumeter, to recover it",
			"init", found.init, "at_most", r.again.budget)
		found.release()
		return nil
	}
	return found
}
