package inventory

import (
	"context"
	"time"
)

const (
	again = time.Minute     // after which saving is tried again
	grace = 2 * time.Second // that saving may take when the exporter is told to stop
)

// Run saves what changes, and once more when the context ends.
func (x *Inventory) Run(ctx context.Context) {
	if !x.cfg.Store.Keeps() {
		return
	}
	ended := make(chan struct{})
	go func() { defer close(ended); x.keep(ctx) }()
	<-ctx.Done()
	select {
	case <-ended:
	case <-time.After(grace): // a disk that hangs must not keep the process from ending
		x.cfg.Logger.Warn("the state directory does not answer")
	}
}

// keep saves until the context ends.
func (x *Inventory) keep(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-x.changed:
			if failing = !x.save(failing); failing {
				x.wake()
				select {
				case <-ctx.Done():
				case <-time.After(again):
				}
			}
		}
	}
	select {
	case <-x.changed:
		x.save(failing)
	default:
	}
}

// save says whether the inventory was saved, and logs what is new about that.
func (x *Inventory) save(failing bool) bool {
	err := x.cfg.Store.Save(name, record{x.entries()})
	switch {
	case err != nil && !failing:
		x.cfg.Logger.Error("the inventory can not be kept", "err", err)
	case err == nil && failing:
		x.cfg.Logger.Info("the inventory is kept again")
	}
	return err == nil
}

// wake has it saved, unless that is to be done already.
func (x *Inventory) wake() {
	select {
	case x.changed <- struct{}{}:
	default:
	}
}
