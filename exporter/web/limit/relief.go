package limit

import (
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// reliefDelay is how long after the last overload memory is given back.
const reliefDelay = 5 * time.Second

// Relief gives memory back to the system after an overload, which the runtime itself does in the course of
// minutes. The zero value is ready.
type Relief struct {
	mu    sync.Mutex
	timer *time.Timer
	free  func() // nil: freeMemory
}

// Note reports an overload.
func (r *Relief) Note() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer == nil {
		free := r.free
		if free == nil {
			free = freeMemory
		}
		r.timer = time.AfterFunc(reliefDelay, free)
		return
	}
	r.timer.Reset(reliefDelay)
}

// freeMemory gives back what is free, and what pools keep: these forget in the second collection.
func freeMemory() {
	runtime.GC()
	debug.FreeOSMemory()
}
