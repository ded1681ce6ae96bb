package sim

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

const (
	inlet      = 25.0 // Celsius, of the air
	thermalLag = 45.0 // seconds until two thirds of a step in power are felt
	memoryLag  = 70.0
)

// causes is a set of telemetry.ThrottleCause.
type causes uint16

func setOf(list ...telemetry.ThrottleCause) causes {
	var c causes
	for _, one := range list {
		c |= 1 << one
	}
	return c
}

// The sets a board can be in. The hardware says with its brake that it slows down.
const (
	powerCap   causes = 1 << telemetry.ThrottleCauseSWPowerCap
	tooHot     causes = 1 << telemetry.ThrottleCauseSWThermal
	powerBrake causes = 1<<telemetry.ThrottleCauseHWPowerBrake | 1<<telemetry.ThrottleCauseHWSlowdown
	muchTooHot causes = 1<<telemetry.ThrottleCauseHWThermal | 1<<telemetry.ThrottleCauseHWSlowdown
)

// instant is what holds for a whole tick.
type instant struct {
	busy    int64 // percent of the tick in which a kernel runs, rounded up: zero is no work at all
	demand  int64 // milliwatts at full clocks
	power   int64 // milliwatts
	held    causes
	core    float64 // Celsius, at the beginning
	memory  float64
	cooling bool // the driver has begun to cool the chip and has not ended
	slowed  bool // and so has the hardware
	asked   Faults
	pace    int64 // the speed of the clocks under what holds them down, ‰
}

// sums are whole numbers, so that adding ticks one by one or cycles at once is the same.
type sums struct {
	energy int64                                     // millijoules
	busy   int64                                     // hundredths of a second
	held   [telemetry.ThrottleCauseUnknown + 1]int64 // seconds
	below  [2]int64                                  // seconds, by floor
	done   [maxDuties]done                           // by duty
	awake  int64                                     // seconds in which NVLinks carried anything
	moved  [maxDuties]moved                          // by duty
}

// add adds others, so many times.
func (s *sums) add(o *sums, times int64) {
	s.energy += times * o.energy
	s.busy += times * o.busy
	s.awake += times * o.awake
	for i := range s.held {
		s.held[i] += times * o.held[i]
	}
	for i := range s.below {
		s.below[i] += times * o.below[i]
	}
	for i := range s.done {
		s.done[i].busy += times * o.done[i].busy
		s.done[i].wave += times * o.done[i].wave
		s.moved[i].add(o.moved[i], times)
	}
}

// done is the work of a duty: hundredths of a second in which a kernel ran, and milliseconds of waves.
type done struct{ busy, wave int64 }

// The clocks below which a policy counts the time.
const (
	applicationFloor = iota // the clock set for applications
	baseFloor
)

// physics is the state of one board. It is a function of the time since its driver was loaded and of
// what was asked for alone: when it was looked at before does not matter.
type physics struct {
	board  *board
	plan   *plan  // of the first duty; of the board's cooling too
	duties []duty // one, or one a partition
	slices int64  // of the chip
	asked  suffered

	// Of the model.
	idle, limit, brake   int64      // milliwatts
	floors               [2]float64 // the share of the demand at whose power the clocks are at a floor
	resistance, degraded float64    // degrees of the core above the inlet per milliwatt, cooled well and badly
	failed               float64    // and hardly at all
	memoryResistance     float64
	hold                 int64 // milliwatts at which a badly cooled chip gets no hotter
	crawl                int64 // and one that is hardly cooled
	coreStep, memoryStep float64
	restCore, restMemory float64

	seen  time.Duration // the latest time asked for; time never goes back
	cycle int64         // which cycle it is in
	tick  int64         // of the cycle: the one that holds
	part  float64       // seconds of it that are over
	now   instant
	sum   sums   // of the ticks of this cycle that are over
	past  sums   // of the cycles that are over
	last  minute // the power of the ticks before this one
	whole *sums  // of a whole cycle of which nothing was asked; nil until one is over
	rest  minute // the last of such a cycle

	strained int64 // the last tick of this cycle in which it was asked for another load or heat; none: -1
}

func newPhysics(b *board, duties []duty) physics {
	const perUnit = 1000
	x := physics{
		board: b, plan: duties[0].plan, duties: duties,
		idle: b.idle * perUnit, limit: b.enforced() * perUnit, brake: b.enforced() * perUnit / 2,
		coreStep: 1 - math.Exp(-1/thermalLag), memoryStep: 1 - math.Exp(-1/memoryLag),
	}
	x.resistance = (float64(b.heat.full) - inlet) / float64(x.limit)
	x.memoryResistance = (float64(b.heat.fullMemory) - inlet) / float64(x.limit)
	// Bad enough that a board at its limit would get past the slowdown, if the driver let it.
	x.degraded = (float64(b.heat.slowdown) + 8 - inlet) / float64(x.limit)
	x.hold = int64((float64(b.heat.coreMax) - 1 - inlet) / x.degraded)
	// So bad that the driver's hold is not enough, and the hardware comes to its help.
	x.failed = 1.6 * x.degraded
	x.crawl = int64((float64(b.heat.slowdown) - 3 - inlet) / x.failed)
	x.restCore = inlet + x.resistance*float64(x.idle)
	x.restMemory = inlet + x.memoryResistance*float64(x.idle)
	graphics := b.clocks[telemetry.ClockTypeGraphics].most
	for i, megahertz := range [...]int64{applicationFloor: cmp.Or(b.application, graphics), baseFloor: b.base} {
		if graphics != 0 {
			x.floors[i] = math.Pow(float64(megahertz)/float64(graphics), 1/speedOfPower)
		}
	}
	for i := range duties {
		x.slices += duties[i].slices
	}
	x.begin()
	return x
}

// begin is the first tick of any cycle.
func (x *physics) begin() {
	x.tick, x.sum, x.last, x.strained = 0, sums{}, x.rest, -1
	for i := range x.duties {
		x.duties[i].begin()
	}
	x.now = instant{core: x.restCore, memory: x.restMemory}
	x.enter()
}

// moveTo goes to a time since the driver was loaded. It costs two cycles at most, however long ago
// the last call was, and one for each since then in which something was asked for.
func (x *physics) moveTo(t time.Duration) {
	x.seen = max(x.seen, t)
	n := int64(x.seen / time.Second)
	x.part = (x.seen % time.Second).Seconds()
	if cycle := n / cycleTicks; cycle != x.cycle {
		x.leap(cycle)
	}
	x.advance(n % cycleTicks)
}

// straining are the faults that make a cycle another.
const straining Faults = 1<<gpuHot | 1<<gpuIdle

// leap goes to the beginning of a later cycle.
func (x *physics) leap(to int64) {
	if x.whole == nil {
		well := newPhysics(x.board, slices.Clone(x.duties))
		well.advance(cycleTicks)
		x.whole, x.rest = &well.sum, well.last
	}
	for x.cycle < to {
		next := (x.cycle + 1) * cycleTicks
		if x.strained < 0 && x.asked.between(x.cycle*cycleTicks, next, straining) == next {
			over := x.asked.between(next, to*cycleTicks, straining)/cycleTicks - x.cycle
			x.past.add(x.whole, over)
			x.cycle += over
			x.begin()
			continue
		}
		x.advance(cycleTicks)
		x.past.add(&x.sum, 1)
		end, last, warm := x.now, x.last, x.strained >= cycleTicks-restTicks
		x.cycle++
		x.begin()
		if warm { // it has not come to rest
			x.now, x.last, x.strained = end, last, 0
			x.enter()
		}
	}
}

// advance ends ticks until the one given holds.
func (x *physics) advance(to int64) {
	for x.tick < to {
		x.leave()
		x.tick++
		x.enter()
	}
}

// enter finds what holds for the tick that begins.
func (x *physics) enter() {
	n := &x.now
	if n.asked = x.asked.at(x.cycle*cycleTicks + x.tick); n.asked&straining != 0 {
		x.strained = x.tick
	}
	var busy, power int64
	for i := range x.duties {
		d := &x.duties[i]
		d.enter(x.tick, n.asked.has(gpuIdle))
		busy += d.load.busy * d.slices
		power += d.load.power * d.slices
	}
	n.busy = (busy + x.slices - 1) / x.slices
	n.demand = x.idle + (x.limit-x.idle)*power/(1000*x.slices)
	n.power, n.held = n.demand, 0

	if n.power > x.limit {
		n.power, n.held = x.limit, powerCap
	}
	// Two degrees of hysteresis, as a driver would: else the clocks would flutter.
	coreMax := float64(x.board.heat.coreMax)
	n.cooling = n.core >= coreMax || n.cooling && n.core >= coreMax-2
	if n.cooling && n.power > x.hold {
		n.power, n.held = x.hold, n.held|tooHot
	}
	slowdown := float64(x.board.heat.slowdown)
	n.slowed = n.core >= slowdown || n.slowed && n.core >= slowdown-1
	if n.slowed && n.power > x.crawl {
		n.power, n.held = x.crawl, n.held|muchTooHot
	}
	if x.plan.brake.has(x.tick) && n.power > x.brake {
		n.power, n.held = x.brake, n.held|powerBrake
	}
	if n.pace = 1000; n.held != 0 {
		n.pace = 1000 * (n.power - x.idle) / (n.demand - x.idle)
	}
}

// leave counts the tick that ends and lets the board warm up or cool down for it.
func (x *physics) leave() {
	n := &x.now
	x.sum.energy += n.power
	x.sum.busy += n.busy
	x.last.end(x.tick, n.power)
	x.sum.awake += x.awake()
	for rest := uint16(n.held); rest != 0; rest &= rest - 1 {
		x.sum.held[bits.TrailingZeros16(rest)]++
	}
	for i := range x.duties {
		x.sum.done[i].busy += x.duties[i].load.busy
		x.sum.done[i].wave += x.duties[i].load.wave
		x.sum.moved[i].add(x.duties[i].moves(x.tick, n.pace), 1)
	}
	for i := range x.floors {
		x.sum.below[i] += x.below(i)
	}
	r := x.resistance
	switch {
	case n.asked.has(gpuHot):
		r = x.failed
	case x.plan.hot.has(x.tick):
		r = x.degraded
	}
	n.core += x.coreStep * (inlet + r*float64(n.power) - n.core)
	n.memory += x.memoryStep * (inlet + x.memoryResistance*float64(n.power) - n.memory)
}

// joules is the energy drawn since the driver was loaded.
func (x *physics) joules() float64 {
	return milli * x.total(x.sum.energy, func(s *sums) int64 { return s.energy }, float64(x.now.power))
}

// busySeconds is the time in which a kernel ran.
func (x *physics) busySeconds() float64 {
	return percent * x.total(x.sum.busy, func(s *sums) int64 { return s.busy }, float64(x.now.busy))
}

// heldSeconds is the time a cause held the clocks down.
func (x *physics) heldSeconds(c telemetry.ThrottleCause) float64 {
	rate := 0.0
	if x.now.held&setOf(c) != 0 {
		rate = 1
	}
	return x.total(x.sum.held[c], func(s *sums) int64 { return s.held[c] }, rate)
}

// below is 1 while the clocks are held below a floor, else 0.
func (x *physics) below(floor int) int64 {
	if x.now.held != 0 && float64(x.now.power) < x.floors[floor]*float64(x.now.demand) {
		return 1
	}
	return 0
}

// belowSeconds is the time the clocks were held below a floor.
func (x *physics) belowSeconds(floor int) float64 {
	return x.total(x.sum.below[floor], func(s *sums) int64 { return s.below[floor] }, float64(x.below(floor)))
}

// total adds the cycles that are over, the ticks of this one that are, and of this tick what is.
func (x *physics) total(ticks int64, of func(*sums) int64, perSecond float64) float64 {
	return float64(ticks+of(&x.past)) + perSecond*x.part
}
