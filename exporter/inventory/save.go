package inventory

import (
	"context"
	"time"
)

// again is the time after which saving is tried again.
const again = time.Minute

// Run saves what changes, and once more when the context ends. No lock is held while it writes.
func (x *Inventory) Run(ctx context.Context) {
	if !x.cfg.Store.Keeps() {
		return
	}
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
