package sim

// Time goes in ticks of a second. All jobs of a board repeat after a cycle, which ends with a rest
// long enough to cool down in: each cycle begins alike, so any number of them can be skipped.
const (
	cycleTicks = 6 * 3600
	restTicks  = 15 * 60
)

// window is a part of a cycle, in ticks, the last not included.
type window struct{ from, to int64 }

func (w window) has(t int64) bool { return w.from <= t && t < w.to }

// job is one job of a cycle: loading, then work until it ends.
type job struct {
	window
	ramp int64 // ticks until all of its memory is taken and all of the board works
}

// plan is what a board has to do in a cycle.
type plan struct {
	seed      uint64
	serving   bool // answers requests; else it trains
	work      *mixture
	model     *llm  // it answers with
	mates     int64 // boards that work on each job
	jobs      []job
	step      int64  // ticks of one wave of training
	every     int64  // ticks from checkpoint to checkpoint
	pause     int64  // ticks a checkpoint takes
	weight    int64  // power at full load, ‰ of what lies between idle and limit
	footprint int64  // memory of a job, ‰ of what is to be had
	hot       window // its cooling fails
	brake     window // the power supply asks the whole node to slow down
}

// newPlan makes the plan of one board. Boards of one job start, wait and end together; every other
// job of a node's entry serves, and all on boards bought for pictures. The memory is what each of them,
// or a partition, has for it.
func newPlan(s slot, memory int64, nodeSeed, jobSeed, ownSeed uint64) *plan {
	p := &plan{
		seed: mix(ownSeed, 'n'), serving: s.job%2 == 1 || s.board.media, mates: int64(s.mates),
		step:  between(mix(jobSeed, 's'), 7, 15),
		every: between(mix(jobSeed, 'e'), 300, 600), pause: between(mix(jobSeed, 'p'), 12, 20),
		footprint: between(mix(jobSeed, 'm'), 700, 950),
		// Near enough to the limit that the waves of training cross it.
		weight: between(mix(ownSeed, 'w'), 950, 1000),
	}
	p.work = &training
	if p.serving {
		p.work, p.model = &serving, largest(memory*p.mates)
		p.footprint = 900 // as engines take at once, for a cache as large as can be
		p.weight = between(mix(ownSeed, 'w'), 650, 750)
	}
	const work = cycleTicks - restTicks
	for from, n := between(mix(jobSeed, 'i'), 20, 60), uint64(0); from < work; n++ {
		j := job{window: window{from, work}, ramp: between(mix(jobSeed, 'r', n), 20, 60)}
		if p.serving { // at once, and until the end
			j.from, j.ramp = 1, p.model.ramp(p.mates)
		} else {
			j.to = min(work, from+between(mix(jobSeed, 'l', n), 20*60, 55*60))
		}
		p.jobs = append(p.jobs, j)
		from = j.to + between(mix(jobSeed, 'g', n), 60, 300)
	}
	if s.seat == jobSize-1 { // the end of the row, where the air is warmest
		from := p.jobs[0].from + between(mix(ownSeed, 'h'), 300, 600)
		p.hot = window{from, from + 420}
	}
	from := between(mix(nodeSeed, 'b'), 900, 3000)
	p.brake = window{from, from + 15}
	return p
}

// end is when a board is free for what must be done to it after a tick: when its job has ended, or at
// once, and the minute that takes is over.
func (p *plan) end(t int64) int64 {
	const takes = 60
	for _, j := range p.jobs {
		if j.has(t) {
			return j.to + takes
		}
	}
	return t + takes
}

// load is what a tick asks for.
type load struct {
	busy  int64 // percent of the tick in which a kernel runs
	wave  int64 // ‰ the matrix units have to do beside it, or less than it
	power int64 // that takes at full clocks, ‰ of what lies between idle and limit
	saves bool  // a checkpoint is written
}

// load is what the board has to do in a tick. j is nil between jobs; one that is idle has loaded and
// waits for what never comes, or answers a request now and then.
func (p *plan) load(t int64, j *job, idle bool) load {
	noise := scramble(p.seed + uint64(t))
	if j == nil {
		return load{power: int64(noise % 8)}
	}
	var l load
	since := t - j.from
	switch {
	case since < j.ramp:
		l.busy = max(1, 95*since/j.ramp) // what is loaded is put in its place
	case idle && p.serving:
		l.busy = 1
	case idle: // not even a checkpoint
	case p.serving:
		l.busy = 55 + 30*triangle(t, 1500)/1000 + 8*triangle(t, 97)/1000 + int64(noise%9) - 4
	case (since-j.ramp)%p.every >= p.every-p.pause:
		l.busy = 10 + int64(noise%10)
		l.saves = true
	default:
		l.busy = 97 + int64(noise%4)
		l.wave = 60 * triangle(t, p.step) / 1000
	}
	l.power = max(0, l.busy*p.weight/100+l.wave+int64(noise>>32%20))
	return l
}
