package attribution

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// hold notes what memory each workload holds now, and returns how much of the thing's that is.
func (a *Attributor) hold(o *Owner, used metric.Value, uses []Use, listed bool) (told float64) {
	total, known := used.Get()
	sums, whole := holdings(o.Thing, uses, listed)
	rest := total
	set := func(acc *account, n float64) {
		if acc.workload.Type == telemetry.WorkloadTypeOverflow {
			together, _ := acc.memory.Get()
			acc.memory.Set(together + n)
		} else {
			acc.memory.Set(n)
		}
		told += n
	}
	for i := range o.Holders {
		h := &o.Holders[i]
		acc := a.bookedTo(o.Thing, h.Workload)
		if acc == nil {
			continue
		}
		switch {
		case whole:
			n := 0.
			for w, bytes := range sums {
				if samePod(&w, &h.Workload) {
					n += bytes
				}
			}
			set(acc, n)
			rest -= n
		case o.Sole() != nil && known:
			set(acc, total)
			rest = 0
		case acc.workload.Type != telemetry.WorkloadTypeOverflow:
			acc.memory.Fail(metric.Unsupported)
		}
	}
	if acc := a.accounts[key{o.Thing, unattributed}]; acc != nil {
		if known {
			if rest < 0 {
				a.clamps["gpu.workload.memory.usage"]++
			}
			set(acc, max(rest, 0))
		} else {
			acc.memory.Fail(metric.Unsupported)
		}
	}
	return told
}

// holdings are what the processes of each workload hold of a thing, and whether that is all: of one
// of which it is not known it is known of none.
func holdings(at Thing, uses []Use, listed bool) (sums map[Workload]float64, whole bool) {
	sums = map[Workload]float64{}
	for i := range uses {
		u := &uses[i]
		if u.Thing != at {
			continue
		}
		n, ok := u.Memory.Get()
		if !ok {
			return nil, false
		}
		sums[u.Workload] += n
	}
	return sums, listed
}
