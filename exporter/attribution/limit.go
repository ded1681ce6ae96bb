package attribution

import (
	"maps"
	"slices"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// folded counts what is beyond the limit.
type folded struct {
	now    int    // workloads told as one
	total  uint64 // that ever were
	billed uint64 // workloads billed to a line of type overflow
}

// Counts are what an Attributor has found since it began, but for those of now.
type Counts struct {
	Workloads int               // told now, each on each of its devices and partitions; those of nobody among them
	Folded    int               // workloads told now as one, of type overflow
	FoldedAll uint64            // workloads that ever were
	Lines     int               // of the ledger, now
	Billed    uint64            // workloads billed to a line of type overflow, for want of room for their own
	Clamps    map[string]uint64 // times a remainder below zero was set to 0, by the metric it is of
	Missed    float64           // seconds of this run for which nothing was counted, since no picture was taken for more than ten minutes; those between runs are of exporter/downtime
}

// Counts tells them.
func (a *Attributor) Counts() Counts {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Counts{
		Workloads: a.told, Folded: a.folded.now, FoldedAll: a.folded.total, Lines: len(a.lines), Billed: a.folded.billed,
		Clamps: maps.Clone(a.clamps), Missed: a.missed,
	}
}

// admit gives a new account its place. Beyond the limit the newest are told as one, and it stays
// so: processes first, and then other workloads.
func (a *Attributor) admit(acc *account) {
	switch {
	case acc.workload.Type == telemetry.WorkloadTypeOverflow:
		return // one for each device and partition
	case acc.workload.Type < telemetry.WorkloadTypeUnattributed && a.told >= a.cfg.Limit:
		last := acc
		if acc.workload.Type != telemetry.WorkloadTypeProcess {
			for _, other := range slices.Backward(a.order) {
				if other.workload.Type == telemetry.WorkloadTypeProcess && other.into == nil {
					last = other
					break
				}
			}
		}
		last.into = a.open(last.at, overflow, Detail{}, "")
		if !last.live { // what it took so far was told as 0
			last.into.count(last)
		}
		a.folded.now++
		a.folded.total++
	default:
		a.told++
	}
}

// leave takes back the place of an account that ends.
func (a *Attributor) leave(acc *account) {
	switch {
	case acc.workload.Type == telemetry.WorkloadTypeOverflow:
	case acc.into != nil:
		a.folded.now--
	default:
		a.told--
	}
}

// resume lets a workload go on where one that had all its labels ended: identity is the label set.
// fresh is the account it has by now, if any.
func (a *Attributor) resume(k key, w Workload, fresh *account) *account {
	i := slices.IndexFunc(a.order, func(acc *account) bool { return acc.retired && acc.at == k.Thing && acc.workload == w })
	if i < 0 {
		return fresh
	}
	before := a.order[i]
	if fresh != nil {
		before.take(fresh)
		a.leave(fresh)
		a.order = slices.DeleteFunc(a.order, func(acc *account) bool { return acc == fresh })
	}
	before.retired = false
	a.accounts[k] = before
	return before
}
