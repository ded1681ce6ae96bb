package sim

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// fault is a sort of rare event.
type fault struct {
	chance      uint64 // that it happens in a cycle, ‰
	xid         int64  // of NVIDIA's driver; zero: it says nothing
	corrected   int64  // memory errors
	uncorrected int64
	byJob       bool // only a job can make it
}

// faultSorts are the faults that happen here, sorted by XID. Their meaning is of NVIDIA's XID
// catalogue. A job goes on after its fault: the cycle it belongs to does not change.
var faultSorts = [...]fault{
	{chance: 500, corrected: 1},
	{chance: 250, xid: 13, byJob: true},   // graphics engine exception
	{chance: 330, xid: 31, byJob: true},   // memory page fault
	{chance: 40, xid: 63, corrected: 3},   // row remapping event
	{chance: 25, xid: 94, uncorrected: 1}, // contained memory error
}

// never is the tick of a fault that does not happen in a cycle.
const never = cycleTicks

// faultLog counts the faults of one board.
type faultLog struct {
	plan   *plan
	seed   uint64
	cannot [len(faultSorts)]bool
	labels [len(faultSorts)]*metric.Labels // nil: no XID

	cycle  int64
	past   [len(faultSorts)]int64 // in the cycles that are over
	at     [len(faultSorts)]int64 // the tick of this cycle
	before [2]int64               // memory errors in the board's life until its driver was loaded
}

func newFaultLog(b *board, p *plan, seed uint64) faultLog {
	l := faultLog{plan: p, seed: seed}
	l.before = [2]int64{
		telemetry.ECCErrorTypeCorrected:   between(mix(seed, 'c'), 0, 40),
		telemetry.ECCErrorTypeUncorrected: between(mix(seed, 'u'), 0, 1),
	}
	for i, f := range faultSorts {
		l.cannot[i] = f.corrected+f.uncorrected > 0 && !b.ecc
		if b.vendor == nvidia && f.xid != 0 {
			l.labels[i] = telemetry.XIDErrorsAttributes{XID: f.xid}.Labels()
		}
	}
	l.draw()
	return l
}

// moveTo goes to a later cycle.
func (l *faultLog) moveTo(cycle int64) {
	for l.cycle < cycle {
		for i := range l.at {
			if l.at[i] != never {
				l.past[i]++
			}
		}
		l.cycle++
		l.draw()
	}
}

// draw decides what happens in a cycle, and when.
func (l *faultLog) draw() {
	for i, f := range faultSorts {
		random := mix(l.seed, uint64(l.cycle), uint64(i))
		l.at[i] = never
		if l.cannot[i] || random%1000 >= f.chance {
			continue
		}
		random = scramble(random)
		l.at[i] = between(random, 0, cycleTicks-1)
		if f.byJob {
			j := l.plan.jobs[random%uint64(len(l.plan.jobs))]
			l.at[i] = between(scramble(random), j.from, j.to-1)
		}
	}
}

// count is how often a sort of fault happened until a tick of this cycle.
func (l *faultLog) count(sort int, tick int64) int64 {
	n := l.past[sort]
	if l.at[sort] <= tick {
		n++
	}
	return n
}

// memoryErrors are those found until a tick, by telemetry.ECCErrorType.
func (l *faultLog) memoryErrors(tick int64) [2]int64 {
	var n [2]int64
	for i, f := range faultSorts {
		c := l.count(i, tick)
		n[telemetry.ECCErrorTypeCorrected] += c * f.corrected
		n[telemetry.ECCErrorTypeUncorrected] += c * f.uncorrected
	}
	return n
}
