package state

import (
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/safefile"
)

// disk runs operations that may hang, one at a time. While one hangs no other is started, so that a disk that
// does not respond costs one goroutine.
type disk struct {
	turn chan struct{} // holds an entry while an operation runs

	mu   sync.Mutex
	hung *operation // that no caller waits for any more; nil: none
}

type operation struct{ ended bool }

func newDisk() *disk { return &disk{turn: make(chan struct{}, 1)} }

// do runs an operation and waits for it as long as safefile.Patience, and then returns ErrHanging. The
// operation goes on.
func (d *disk) do(run func() error) error {
	if d.hangs() {
		return ErrHanging
	}
	late := time.NewTimer(safefile.Patience)
	defer late.Stop()
	select {
	case d.turn <- struct{}{}:
	case <-late.C:
		return ErrHanging
	}
	now, done := new(operation), make(chan error, 1)
	go func() {
		err := run()
		d.end(now)
		<-d.turn
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-late.C:
		d.giveUp(now)
		return ErrHanging
	}
}

// hangs reports whether an operation hangs.
func (d *disk) hangs() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hung != nil
}

// giveUp notes that an operation hangs, unless it has ended meanwhile.
func (d *disk) giveUp(o *operation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !o.ended {
		d.hung = o
	}
}

func (d *disk) end(o *operation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o.ended = true
	if d.hung == o {
		d.hung = nil
	}
}
