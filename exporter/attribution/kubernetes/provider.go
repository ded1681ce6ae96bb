package kubernetes

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"
)

// provider tells the table of the node's pods.
type provider interface {
	// run tells until the context ends, or until it can not, for a reason that will not pass by itself;
	// its health says which. Failures that pass are its own to wait for.
	run(context.Context)
	state() *health
}

const (
	// Pauses after all providers have failed.
	shortestRest, longestRest = 10 * time.Second, 10 * time.Minute
	// betterEvery is how often the sockets of a better provider are looked for while a worse one tells.
	betterEvery = time.Minute
)

// chooser runs the first provider that works, in the order they are given.
type chooser struct {
	providers []provider
	better    []string // sockets for which, once they are there, it is worth starting over
	log       *slog.Logger
	pause     func(tries int) time.Duration // after all have failed
	look      time.Duration                 // how often those sockets are looked for
}

// run ends with the context.
func (c *chooser) run(ctx context.Context) {
	for tries := 0; len(c.providers) > 0; tries++ {
		there := present(c.better)
		for at, p := range c.providers {
			before := p.state().get().Read
			if at == 0 {
				p.run(ctx)
			} else {
				c.tell(ctx, p, there)
			}
			if p.state().get().Read.After(before) {
				tries = -1
				break // it told, and no longer does: start over with the best
			}
			if ctx.Err() != nil {
				return
			}
		}
		if !sleep(ctx, c.pause(max(tries, 0))) {
			return
		}
	}
}

// respite is how long to wait after all providers have failed so many times: doubled, and half of it chance.
func respite(tries int) time.Duration {
	pause := min(shortestRest<<min(tries, 10), longestRest)
	return pause/2 + rand.N(pause/2)
}

// tell lets a provider run for as long as it tells and no better one has come up, since there were so
// many sockets of better ones.
func (c *chooser) tell(ctx context.Context, p provider, there int) {
	ctx, stop := context.WithCancel(ctx)
	var looking sync.WaitGroup
	defer looking.Wait()
	defer stop()
	looking.Go(func() {
		for len(c.better) > 0 && sleep(ctx, c.look) {
			if present(c.better) > there {
				c.log.Info("kubernetes: the kubelet has a Pods API now")
				stop()
			}
		}
	})
	p.run(ctx)
}

// present counts the files that are there.
func present(paths []string) int {
	n := 0
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			n++
		}
	}
	return n
}

// sleep returns false when the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
