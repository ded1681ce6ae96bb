package attribution

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

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
		Workloads: a.told, Folded: a.folds.len(), FoldedAll: a.folds.total, Lines: len(a.lines), Billed: a.billed,
		Clamps: maps.Clone(a.clamps), Missed: a.missed,
	}
}

// admit reports whether there is room for a new workload. Beyond the limit somebody's newest workload is
// folded into the one series of type overflow, and stays so. It is one of the tenant that has the most
// workloads here, the new one counted, so that a tenant with a storm of names folds its own and leaves the
// others theirs. Processes are folded before other workloads of such tenants.
func (a *Attributor) admit(w Workload) bool {
	if w.Type >= telemetry.WorkloadTypeUnattributed {
		return true
	}
	for a.told >= a.cfg.Limit {
		victim := a.victim(w)
		if victim == nil {
			return false
		}
		a.fold(victim)
	}
	return true
}

// victim returns the account that makes room for a new workload, nil when the new one is to be folded.
func (a *Attributor) victim(w Workload) *account {
	tenant := w.tenant()
	most := a.tenants[tenant] + 1
	for _, n := range a.tenants {
		most = max(most, n)
	}
	own := a.tenants[tenant]+1 == most
	if own && w.Type == telemetry.WorkloadTypeProcess {
		return nil
	}
	var newest *account // of the tenants with the most
	for _, acc := range slices.Backward(a.order) {
		if acc.workload.Type >= telemetry.WorkloadTypeUnattributed || a.tenants[acc.tenant] < most && !(own && acc.tenant == tenant) {
			continue
		}
		if acc.workload.Type == telemetry.WorkloadTypeProcess {
			return acc
		}
		if newest == nil {
			newest = acc
		}
	}
	if own {
		return nil
	}
	return newest
}

// tenant is whose share of the limit a workload takes: a namespace's, a Slurm user's, a local user's, a
// container runtime's, or that of the machine's own units and processes.
func (w *Workload) tenant() string {
	switch w.Type {
	case telemetry.WorkloadTypeKubernetes:
		return "namespace/" + w.Namespace
	case telemetry.WorkloadTypeSlurm:
		return "slurm/" + cmp.Or(w.User, w.Account)
	}
	kind, rest, ok := strings.Cut(w.Unit, "/")
	switch {
	case !ok:
		return "machine"
	case kind == "user":
		name, _, _ := strings.Cut(rest, "/")
		return "user/" + name
	}
	return "runtime/" + kind
}

// enter counts an account that is opened.
func (a *Attributor) enter(acc *account) {
	switch {
	case acc.workload.Type == telemetry.WorkloadTypeOverflow: // one for each device and partition
	case acc.workload.Type >= telemetry.WorkloadTypeUnattributed:
		a.told++
	default:
		a.told++
		a.tenants[acc.tenant]++
	}
}

// leave takes back the place of an account that ends.
func (a *Attributor) leave(acc *account) {
	if acc.workload.Type == telemetry.WorkloadTypeOverflow {
		return
	}
	a.told--
	if acc.workload.Type < telemetry.WorkloadTypeUnattributed {
		if a.tenants[acc.tenant]--; a.tenants[acc.tenant] == 0 {
			delete(a.tenants, acc.tenant)
		}
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
