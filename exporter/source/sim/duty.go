package sim

// maxDuties is how many a board may have at once: MIG splits one into seven at most.
const maxDuties = 7

// duty is what one plan makes a board, or a partition of it, do.
type duty struct {
	plan   *plan
	slices int64 // of the chip's that work on it; a board that is not split is one
	memory int64 // bytes that its jobs can have

	next int  // the first of the plan's jobs not over
	job  *job // nil: none
	load load
}

// room is the memory that jobs of a whole board can have.
func (b *board) room() int64 { return b.memory - b.reserved }

// enter finds what is to be done in a tick, idly or not. Ticks come in order, until begin.
func (d *duty) enter(tick int64, idle bool) {
	jobs := d.plan.jobs
	for d.next < len(jobs) && tick >= jobs[d.next].to {
		d.next++
	}
	d.job = nil
	if d.next < len(jobs) && jobs[d.next].has(tick) {
		d.job = &jobs[d.next]
	}
	d.load = d.plan.load(tick, d.job, idle)
}

// begin goes back to the first tick of a cycle.
func (d *duty) begin() { d.next = 0 }

// whole is the memory of a job that has loaded, in bytes.
func (d *duty) whole() int64 { return d.memory / 1000 * d.plan.footprint }

// used is the memory that is taken: more and more while a job loads, then all of it until the job ends.
func (d *duty) used(tick int64) int64 {
	const page = 2 * mebi
	if d.job == nil {
		return 0
	}
	return d.whole() / d.job.ramp * min(d.job.ramp, tick-d.job.from) / page * page
}
