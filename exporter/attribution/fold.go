package attribution

import (
	"cmp"
	"hash/maphash"
	"slices"
	"time"
)

// mostFolds is the maximum number of folded workloads that are remembered. Above it the workloads that ended
// first are forgotten before --workload-keep is over; when they return, they may get series of their own.
const mostFolds = 32768

// fold is the record of a folded workload. Its usage is reported in the overflow series and billed to its own
// line of the ledger. There may be thousands of records.
type fold struct {
	turn     uint64 // of the last snapshot it was in
	seen     int64  // when, Unix time in nanoseconds
	unbilled bill
	line     *usage   // it is billed to
	waiting  *waiting // until the line is known
}

// waiting is a folded workload whose labels are not complete yet.
type waiting struct {
	workload Workload
	model    string // of the device
	born     time.Time
}

// foldID finds a fold. It is a hash, which is smaller than what it is of.
type foldID [2]uint64

// folds are the folded workloads.
type folds struct {
	of    map[foldID]*fold
	seeds [2]maphash.Seed
	total uint64 // that ever were
	most  int    // mostFolds, or fewer in a test
}

func newFolds() folds {
	return folds{of: map[foldID]*fold{}, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, most: mostFolds}
}

func (f *folds) len() int { return len(f.of) }

func (f *folds) id(at Thing, w Workload) foldID {
	k := key{at, identity(w)}
	return foldID{maphash.Comparable(f.seeds[0], k), maphash.Comparable(f.seeds[1], k)}
}

// find returns a folded workload, nil when it is not folded.
func (f *folds) find(at Thing, w Workload) *fold {
	if len(f.of) == 0 {
		return nil
	}
	return f.of[f.id(at, w)]
}

func (f *folds) add(at Thing, w Workload, now time.Time) *fold {
	one := &fold{waiting: &waiting{born: now}}
	f.of[f.id(at, w)] = one
	f.total++
	return one
}

// fold folds a workload that had an account, and reports its held counters in the overflow series.
func (a *Attributor) fold(acc *account) {
	a.leave(acc)
	a.order = slices.DeleteFunc(a.order, func(other *account) bool { return other == acc })
	k := key{acc.at, identity(acc.workload)}
	all := a.openOverflow(acc.at)
	if !acc.live {
		all.count(acc)
	}
	if a.accounts[k] != acc { // it was retired
		return
	}
	delete(a.accounts, k)
	f := a.folds.add(acc.at, acc.workload, acc.born)
	f.turn, f.seen, f.unbilled, f.line = acc.turn, acc.seen.UnixNano(), acc.unbilled, acc.line
	f.waiting.workload, f.waiting.model = acc.workload, acc.model
	if acc.frozen {
		a.freezeFold(f)
	}
}

// seeFold notes that a folded workload is there.
func (a *Attributor) seeFold(f *fold, w Workload, model string, hold time.Duration) {
	if f.waiting == nil && f.turn+1 < a.turn { // it ended, and may be another of its name
		f.line, f.waiting = nil, &waiting{born: a.clock}
	}
	f.turn, f.seen = a.turn, a.clock.UnixNano()
	if f.waiting == nil {
		return
	}
	f.waiting.workload, f.waiting.model = w, model
	if !w.waits() || a.clock.Sub(f.waiting.born) >= hold {
		a.freezeFold(f)
	}
}

// freezeFold finds the line that a folded workload is billed to.
func (a *Attributor) freezeFold(f *fold) {
	if f.line == nil {
		f.line = a.line(f.waiting.workload.usage(f.waiting.model))
	}
	f.waiting = nil
	a.chargeFold(f)
}

// chargeFold moves what a folded workload took to the ledger, once its line is known.
func (a *Attributor) chargeFold(f *fold) {
	if f.waiting != nil {
		return
	}
	f.line.seen = a.clock
	f.line.add(f.unbilled)
	f.unbilled = bill{}
}

// openOverflow returns the account of all folded workloads of a thing, one of which is there.
func (a *Attributor) openOverflow(at Thing) *account {
	return a.open(at, overflow, Detail{}, "", "")
}

// overflowOf returns the account of all folded workloads of a thing, nil where there is none.
func (a *Attributor) overflowOf(at Thing) *account { return a.accounts[key{at, overflow}] }

// sweepFolds bills the folded workloads that ended before their labels were complete. It forgets workloads that
// ended before --workload-keep, and above mostFolds the ones that ended first.
func (a *Attributor) sweepFolds() {
	keep := a.clock.Add(-a.cfg.Keep).UnixNano()
	for id, f := range a.folds.of {
		if f.waiting != nil && f.turn != a.turn {
			a.freezeFold(f)
		}
		if f.seen < keep {
			delete(a.folds.of, id)
		}
	}
	if a.folds.len() <= a.folds.most {
		return
	}
	type ended struct {
		id   foldID
		seen int64
	}
	var all []ended
	for id, f := range a.folds.of {
		if f.turn != a.turn {
			all = append(all, ended{id, f.seen})
		}
	}
	slices.SortFunc(all, func(x, y ended) int { return cmp.Compare(x.seen, y.seen) })
	for _, e := range all[:min(len(all), a.folds.len()-a.folds.most*7/8)] { // room for the next snapshots too
		delete(a.folds.of, e.id)
	}
}
