package sim

import "github.com/gpumeter/gpumeter/exporter/telemetry"

// unit is a part of a chip whose activity is counted.
type unit int

// The units; those that compute follow, in the order of telemetry.Pipe.
const (
	engine unit = iota
	multiprocessors
	warps // the places for them on the multiprocessors
	dram
	pipes
	matrices = pipes + unit(telemetry.PipeTensor)
	units    = pipes + unit(telemetry.PipeInteger) + 1
)

// mixture is what a kind of work uses of each unit while a kernel runs, ‰.
type mixture [units]int64

// Training is matrix products; answering requests moves the model through the chip for each token.
// Neither uses numbers of 64 bits. Near what profilers show of such work.
var (
	training = mixture{engine: 1000, multiprocessors: 930, warps: 410, dram: 330, matrices: 460,
		pipes + unit(telemetry.PipeFp32): 90, pipes + unit(telemetry.PipeFp16): 40, pipes + unit(telemetry.PipeInteger): 130}
	serving = mixture{engine: 1000, multiprocessors: 780, warps: 230, dram: 400, matrices: 160,
		pipes + unit(telemetry.PipeFp32): 60, pipes + unit(telemetry.PipeFp16): 50, pipes + unit(telemetry.PipeInteger): 110}
)

// use is the share of a unit that is used in percent of business and ‰ of waves, which are the
// matrix units'. With the sums of both over time it is the time in seconds.
func (m *mixture) use(u unit, busy, wave float64) float64 {
	used := float64(m[u]) * busy * milli * percent
	if u == matrices {
		used += wave * milli
	}
	return used
}

// active is how much a duty uses a unit now, as a share, and for how many seconds it has.
func (x *physics) active(duty int, u unit) (share, seconds float64) {
	d, sum := &x.duties[duty], &x.sum.done[duty]
	busy, wave := float64(d.load.busy), float64(d.load.wave)
	return d.plan.work.use(u, busy, wave), d.plan.work.use(u,
		x.total(sum.busy, func(s *sums) int64 { return s.done[duty].busy }, busy),
		x.total(sum.wave, func(s *sums) int64 { return s.done[duty].wave }, wave))
}

// activeAll is the same of the chip, which the duties share by slices.
func (x *physics) activeAll(u unit) (share, seconds float64) {
	for i := range x.duties {
		part := float64(x.duties[i].slices) / float64(x.slices)
		now, past := x.active(i, u)
		share += part * now
		seconds += part * past
	}
	return share, seconds
}
