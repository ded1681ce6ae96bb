package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// enter returns the term to open the source in, or, while its devices are released, what is closed
// when one may have begun. A release that comes later waits until leave.
func (k *keeper) enter(ctx context.Context) (term context.Context, back <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if term, back = k.hold.look(ctx); term != nil {
		k.inside = make(chan struct{})
		return term, nil
	}
	k.state, k.err, k.away = telemetry.SourceStateReleased, nil, true
	k.log.Info("source released")
	return nil, back
}

// leave notes that nothing of the driver is held.
func (k *keeper) leave() {
	k.set(func() {
		close(k.inside)
		k.inside = nil
	})
}

// left returns what is closed once nothing of the driver is held.
func (k *keeper) left() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.inside != nil {
		return k.inside
	}
	nothing := make(chan struct{})
	close(nothing)
	return nothing
}

// drain stops the workers and waits until none of them is in the driver: a reader is not closed
// under a device that hangs. It returns nil then, or, when a released source is taken back before,
// the term to go on in.
func (k *keeper) drain(term context.Context, failed error) (next context.Context) {
	for _, w := range k.current() {
		k.dismiss(w)
		k.leaving[w.of()] = w
	}
	released := errors.Is(context.Cause(term), errReleased)
	k.set(func() {
		k.workers, k.draining = nil, slices.Collect(maps.Values(k.leaving))
		if released {
			k.away = true
		}
	})
	late := time.AfterFunc(k.cfg.Timeout, func() { k.late(released) })
	defer k.set(func() {
		late.Stop()
		k.draining, k.stuck = nil, false
	})
	for _, w := range k.leaving {
		for !w.ended() {
			var back <-chan struct{}
			if released && failed == nil {
				if next, back = k.hold.look(term); next != nil {
					return next
				}
			}
			select {
			case <-w.stopped:
			case <-back:
			}
		}
	}
	clear(k.leaving)
	return nil
}

// late notes what keeps the source from closing.
func (k *keeper) late(released bool) {
	k.set(func() {
		hung := k.hung()
		if len(hung) == 0 {
			return
		}
		k.stuck = true
		k.log.Warn("source can not be closed while its driver does not answer", "devices", hung)
		if released {
			k.state, k.err = telemetry.SourceStateFailed, fmt.Errorf("still held: no answer from %s", strings.Join(hung, ", "))
		}
	})
}

// hung names the stopped workers that are still in the driver; it is called under the lock.
func (k *keeper) hung() []string {
	var out []string
	for _, w := range k.draining {
		if !w.ended() {
			out = append(out, w.called)
		}
	}
	slices.Sort(out)
	return out
}

// holding names what keeps the driver from being let go of.
func (k *keeper) holding() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.inside == nil {
		return nil
	}
	held := k.hung()
	for i, device := range held {
		held[i] = k.src.Name + ": " + device
	}
	if len(held) == 0 {
		held = []string{strings.TrimSuffix(k.src.Name+": "+k.doing, ": ")}
	}
	return held
}

// unended names the source for people, with what keeps it from ending.
func (k *keeper) unended() []string {
	held := k.holding()
	if len(held) == 0 {
		return []string{"source " + k.src.Name}
	}
	for i, what := range held {
		held[i] = "source " + what
	}
	return held
}
