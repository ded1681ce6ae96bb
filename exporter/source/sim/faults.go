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
	onChip      bool                     // those are of memory on the chip
	action      telemetry.RecoveryAction // what the driver wants done
	byJob       bool                     // only a job can make it
	kinds       kinds
	on          telemetry.LinkType // if kinds says what went wrong on a link
	by          Faults             // it comes with one of these too, when that is asked for
}

// kinds is a set of telemetry.LinkErrorType.
type kinds uint32

func kindsOf(list ...telemetry.LinkErrorType) kinds {
	var k kinds
	for _, one := range list {
		k |= 1 << one
	}
	return k
}

func (k kinds) has(one telemetry.LinkErrorType) bool { return k&(1<<one) != 0 }

// faultSorts are the faults that happen here, sorted by XID. Their meaning is of NVIDIA's XID
// catalogue. A job goes on after its fault: the cycle it belongs to does not change.
var faultSorts = [...]fault{
	{chance: 500, corrected: 1},
	{chance: 60, corrected: 1, onChip: true},
	{chance: 60, on: telemetry.LinkTypePCIE, kinds: kindsOf( // a packet of the board's is refused
		telemetry.LinkErrorTypeReplay, telemetry.LinkErrorTypeNakReceived, telemetry.LinkErrorTypeCorrectable)},
	{chance: 25, on: telemetry.LinkTypePCIE, kinds: kindsOf( // it refuses one
		telemetry.LinkErrorTypeBadTlp, telemetry.LinkErrorTypeLcrc, telemetry.LinkErrorTypeNakSent, telemetry.LinkErrorTypeCorrectable)},
	{chance: 120, on: telemetry.LinkTypeNvlink, byJob: true, kinds: kindsOf(telemetry.LinkErrorTypeCrc, telemetry.LinkErrorTypeReplay)},
	{chance: 120, on: telemetry.LinkTypeNvlink, byJob: true, kinds: kindsOf(
		telemetry.LinkErrorTypeSymbol, telemetry.LinkErrorTypeEffective, telemetry.LinkErrorTypeReceive)},
	{chance: 15, on: telemetry.LinkTypeNvlink, byJob: true, kinds: kindsOf(telemetry.LinkErrorTypeRecovery)},
	{chance: 250, xid: 13, byJob: true}, // graphics engine exception
	{chance: 330, xid: 31, byJob: true}, // memory page fault
	// double bit error, of memory on the chip, which can not be taken out of use
	{chance: 10, xid: 48, uncorrected: 1, onChip: true, action: telemetry.RecoveryActionReset},
	{chance: 40, xid: rowRemapping, corrected: 3, action: telemetry.RecoveryActionDrainAndReset, by: 1 << gpuECC},
	{chance: 25, xid: 94, uncorrected: 1}, // contained memory error
	// uncontained memory error; the row it is in is replaced
	{xid: 95, uncorrected: 1, action: telemetry.RecoveryActionReset, by: 1 << gpuECC},
	{xid: 109, action: telemetry.RecoveryActionReset, by: 1 << gpuXID}, // context switch timeout
}

// never is the tick of a fault that does not happen in a cycle.
const never = cycleTicks

// faultLog counts the faults of one board.
type faultLog struct {
	plan   *plan
	seed   uint64
	cannot [len(faultSorts)]bool
	labels [len(faultSorts)]*metric.Labels // nil: no XID
	asked  suffered

	cycle  int64
	past   [len(faultSorts)]int64 // in the cycles that are over
	last   [len(faultSorts)]int64 // the tick of the last of them, since the driver was loaded
	at     [len(faultSorts)]int64 // the tick of this cycle
	before memoryErrors           // in the board's life until its driver was loaded

	weakUnit telemetry.ECCSramUnit // of the chip, which all uncorrected errors of its memory are in
	weakLink int64                 // the NVLink that all errors are on, as a bad contact is always the same
	training int64                 // replays while the way to the host was set up
}

func newFaultLog(b *board, p *plan, seed uint64) faultLog {
	l := faultLog{plan: p, seed: seed}
	corrected, onChip := between(mix(seed, 'c'), 0, 40), between(mix(seed, 'd'), 0, 2)
	l.before = memoryErrors{
		telemetry.ECCErrorTypeCorrected:   {telemetry.ECCLocationDram: corrected, telemetry.ECCLocationSram: onChip},
		telemetry.ECCErrorTypeUncorrected: {telemetry.ECCLocationDram: between(mix(seed, 'u'), 0, 1)},
	}
	l.weakUnit = [...]telemetry.ECCSramUnit{telemetry.ECCSramUnitSM, telemetry.ECCSramUnitL2}[mix(seed, 'w')%2]
	if b.nvlink.links != 0 {
		l.weakLink = between(mix(seed, 'l'), 0, b.nvlink.links-1)
	}
	if b.age == hopper {
		l.training = between(mix(seed, 'r'), 100, 180) // as many as a node of H100 had at rest
	}
	for i, f := range faultSorts {
		l.cannot[i] = f.corrected+f.uncorrected > 0 && !b.ecc || f.kinds != 0 && !happens(f, b, p)
		if b.vendor == nvidia && f.xid != 0 {
			l.labels[i] = telemetry.XIDErrorsAttributes{XID: f.xid}.Labels()
		}
	}
	l.draw()
	return l
}

// happens tells whether a fault of a link can be on a board: the link counts it, and carries something.
func happens(f fault, b *board, p *plan) bool {
	return f.kinds&b.counts(f.on) != 0 && (f.on == telemetry.LinkTypePCIE || p.mates > 1)
}

// moveTo goes to a later cycle.
func (l *faultLog) moveTo(cycle int64) {
	for l.cycle < cycle {
		for i := range l.at {
			if l.at[i] != never {
				l.past[i]++
				l.last[i] = l.cycle*cycleTicks + l.at[i]
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
	if l.cannot[sort] {
		return 0
	}
	n, _ := l.asked.events(faultSorts[sort].by, l.cycle*cycleTicks+tick)
	n += l.past[sort]
	if l.at[sort] <= tick {
		n++
	}
	return n
}

// seen is when a sort of fault last happened until a tick of this cycle: its tick since the driver
// was loaded.
func (l *faultLog) seen(sort int, tick int64) int64 {
	_, last := l.asked.events(faultSorts[sort].by, l.cycle*cycleTicks+tick)
	if l.at[sort] <= tick {
		return max(last, l.cycle*cycleTicks+l.at[sort])
	}
	return max(last, l.last[sort])
}

// memoryErrors counts them by telemetry.ECCErrorType and, dram or sram, by telemetry.ECCLocation.
type memoryErrors [2][2]int64

// memoryErrors are those found until a tick.
func (l *faultLog) memoryErrors(tick int64) (n memoryErrors) {
	for i, f := range faultSorts {
		where := telemetry.ECCLocationDram
		if f.onChip {
			where = telemetry.ECCLocationSram
		}
		c := l.count(i, tick)
		n[telemetry.ECCErrorTypeCorrected][where] += c * f.corrected
		n[telemetry.ECCErrorTypeUncorrected][where] += c * f.uncorrected
	}
	return n
}

// waits tells whether what a sort of fault in this cycle asks for is not done yet: that is when the
// job that was at work has ended, or when the fault that was asked for is over.
func (l *faultLog) waits(sort int, tick int64) bool {
	if l.cannot[sort] {
		return false
	}
	return l.at[sort] <= tick && tick < l.plan.end(l.at[sort]) ||
		l.asked.at(l.cycle*cycleTicks+tick)&faultSorts[sort].by != 0
}

// action is what the driver wants done in a tick, the worst of it.
func (l *faultLog) action(tick int64) telemetry.RecoveryAction {
	wanted := telemetry.RecoveryActionNone
	for i, f := range faultSorts {
		if f.action != telemetry.RecoveryActionNone && wanted != telemetry.RecoveryActionReset && l.waits(i, tick) {
			wanted = f.action
		}
	}
	return wanted
}

// linkErrors are those of a kind on a link until a tick.
func (l *faultLog) linkErrors(on *link, kind telemetry.LinkErrorType, tick int64) int64 {
	n := int64(0)
	switch {
	case on.kind == telemetry.LinkTypePCIE && kind == telemetry.LinkErrorTypeReplay:
		n = l.training
	case on.kind == telemetry.LinkTypeNvlink && on.number != l.weakLink:
		return 0
	}
	for i, f := range faultSorts {
		if f.on == on.kind && f.kinds.has(kind) {
			n += l.count(i, tick)
		}
	}
	return n
}
