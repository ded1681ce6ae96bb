//go:build cgo

package nvml

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// While the gate is shut nobody comes in, and those who are in are waited for.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.enter()
		shut := make(chan bool)
		go func() { shut <- g.close(time.Second) }()
		synctest.Wait()
		var in atomic.Int32
		for range 3 {
			go func() {
				g.enter()
				in.Add(1)
				g.leave()
			}()
		}
		synctest.Wait()
		if in.Load() != 0 {
			t.Error("somebody came in while the gate was being shut")
		}
		g.leave()
		if !<-shut {
			t.Error("not shut, though nobody is in")
		}
		synctest.Wait()
		if in.Load() != 0 {
			t.Error("somebody came in while the gate was shut")
		}
		g.open()
		synctest.Wait()
		if in.Load() != 3 {
			t.Errorf("%d came in when it was open again, want 3", in.Load())
		}
	})
}

// One who stays too long keeps the gate open for the others.
func TestGateGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.enter()
		start := time.Now()
		if g.close(letIn) {
			t.Error("shut over one who is in")
		}
		if took := time.Since(start); took != letIn {
			t.Errorf("given up after %v, want %v", took, letIn)
		}
		g.enter() // does not wait
		g.leave()
		g.leave()
		if !g.close(letIn) {
			t.Error("not shut, though nobody is in any more")
		}
	})
}
