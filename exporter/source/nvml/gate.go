package nvml

import (
	"sync"
	"time"
)

// gate keeps reads out while the library is initialised anew.
type gate struct {
	mu     sync.Mutex
	moved  sync.Cond
	inside int
	shut   bool
}

func newGate() *gate {
	g := new(gate)
	g.moved.L = &g.mu
	return g
}

// enter waits until the gate is open.
func (g *gate) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.shut {
		g.moved.Wait()
	}
	g.inside++
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.moved.Broadcast()
}

// close shuts the gate and waits for those inside, unless they take too long: then it is open again.
func (g *gate) close(patience time.Duration) bool {
	late := false
	t := time.AfterFunc(patience, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		late = true
		g.moved.Broadcast()
	})
	defer t.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	for g.inside > 0 && !late {
		g.moved.Wait()
	}
	if g.inside > 0 {
		g.shut = false
		g.moved.Broadcast()
		return false
	}
	return true
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
	g.moved.Broadcast()
}
