package kubernetes

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Health says how well something is known.
type Health struct {
	Reason Reason    // why it is not known, or nothing newer; empty: the last try went well
	Err    string    // the same in words
	Since  time.Time // since when that reason, or that all is well, holds
	Read   time.Time // when it was last known to be right; zero: never
}

// health keeps a Health, and tells the log when it changes.
type health struct {
	source Source
	counts *counts
	now    func() time.Time
	log    *slog.Logger

	mu sync.Mutex
	is Health
}

func newHealth(s Source, c *counts, now func() time.Time, log *slog.Logger) *health {
	return &health{source: s, counts: c, now: now, log: log, is: Health{Reason: Waiting, Since: now()}}
}

// well notes that the source answered.
func (h *health) well() {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.is.Reason != "" {
		h.log.Info("kubernetes: read", "source", h.source)
		h.is = Health{Since: now}
	}
	h.is.Read = now
}

// ill notes that the source failed, and counts it. What it said before stays known.
func (h *health) ill(r Reason, err error) {
	h.counts.fail(h.source, r)
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.is.Reason != r {
		level := slog.LevelWarn
		if h.is.Read.IsZero() && (r == Missing || r == Unsupported || r == Unset) {
			level = slog.LevelInfo // as it is on most machines for all sources but one
		}
		h.log.Log(context.Background(), level, "kubernetes: not read", "source", h.source, "reason", r, "err", err)
		h.is.Reason, h.is.Since = r, now
	}
	h.is.Err = err.Error()
}

func (h *health) get() Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.is
}
