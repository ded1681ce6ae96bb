package attribution

import (
	"context"
	"slices"
	"time"
)

// lookEvery is how often Run asks who was given what.
const lookEvery = time.Second

// Run takes a picture whenever somebody is given a device, or gives one back: what a device does
// before and after is of different workloads. It costs nothing else: claims are asked from memory.
func (a *Attributor) Run(ctx context.Context, picture func(context.Context)) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if a.Changed() {
			picture(ctx)
		}
	}
}

// Changed says whether somebody else was given a device of the last picture than it told.
func (a *Attributor) Changed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.turn == 0 {
		return false
	}
	return !slices.EqualFunc(a.said, a.claims(a.devices), func(x, y Claim) bool {
		return x.Thing == y.Thing && x.Share == y.Share && identity(x.Workload) == identity(y.Workload)
	})
}
