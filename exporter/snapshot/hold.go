package snapshot

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errReleased is why a term ended: its devices were released.
var errReleased = errors.New("released on request")

// hold says whether the devices may be held, in terms: one begins when they are taken back, and
// ends with the next release. The hold of a source that has no devices is nil: its term is the context's own.
type hold struct {
	mu    sync.Mutex
	run   context.Context // that of Run; nil before it
	term  context.Context // the last that began
	end   context.CancelCauseFunc
	until time.Time     // when they are taken back; zero: they are not released
	back  chan struct{} // closed when they are taken back
	timer *time.Timer
}

// start begins the first term, unless the devices were released before.
func (h *hold) start(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.run = ctx
	if h.until.IsZero() {
		h.begin()
	}
}

func (h *hold) begin() { h.term, h.end = context.WithCancelCause(h.run) }

// look returns the term, or, while there is none, what is closed when one may have begun.
func (h *hold) look(ctx context.Context) (term context.Context, back <-chan struct{}) {
	if h == nil {
		return ctx, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until.IsZero() {
		return h.term, nil
	}
	return nil, h.back
}

// released says until when the devices are released; zero: they are not.
func (h *hold) released() (until time.Time, back <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until, h.back
}

// release ends the term, or puts off the end of a release that is on. It calls expired when the
// time may have passed.
func (h *hold) release(d time.Duration, expired func()) (until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := time.Now().Add(d)
	if next.Before(h.until) {
		return h.until
	}
	if h.until.IsZero() {
		h.back = make(chan struct{})
		if h.end != nil {
			h.end(errReleased)
		}
	} else {
		h.timer.Stop()
	}
	h.until, h.timer = next, time.AfterFunc(d, expired)
	return h.until
}

// acquire begins a term when the devices are released, and, with expired set, their time has passed.
func (h *hold) acquire(expired bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until.IsZero() || expired && time.Until(h.until) > 0 {
		return false
	}
	h.timer.Stop()
	h.until = time.Time{}
	if h.run != nil {
		h.begin()
	}
	close(h.back)
	return true
}
