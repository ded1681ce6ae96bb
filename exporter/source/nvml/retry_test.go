//go:build cgo

package nvml

import (
	"testing"
	"testing/synctest"
	"time"
)

// A lost device is looked for as soon as the settings say, and ever less often while it stays away.
func TestRetryInterval(t *testing.T) {
	for retry, first := range map[time.Duration]time.Duration{0: 30 * time.Second, time.Second: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			cfg := config()
			cfg.Retry = retry
			l := newFakeLibrary()
			r, err := open(l, cfg, newArchive(), everything())
			if err != nil {
				t.Fatal(err)
			}
			defer closed(t, r)
			r.again.missing = true
			for i, step := range []struct {
				after time.Duration
				want  int
			}{{0, 0}, {0, 1}, {first - 1, 1}, {1, 2}, {2*first - 1, 2}, {1, 3}, {2 * first, 3}, {2 * first, 4}} {
				time.Sleep(step.after)
				if err := r.renew(); err != nil || l.inits-1 != step.want {
					t.Errorf("retry %v, step %d: initialised anew %d times, want %d (%v)", retry, i, l.inits-1, step.want, err)
				}
			}
		})
	}
}
