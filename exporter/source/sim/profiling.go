package sim

import "github.com/gpumeter/gpumeter/exporter/telemetry"

// profiling tells how full the chip, or a partition of it, is. The window of the gauges is the tick.
func profiling(out *telemetry.Profiling, has bool, active func(unit) (share, seconds float64)) {
	share, seconds := active(engine)
	tell(&out.GrEngineActive, has, share)
	tell(&out.GrEngineActiveTime, has, seconds)
	share, seconds = active(multiprocessors)
	tell(&out.SMActive, has, share)
	tell(&out.SMActiveTime, has, seconds)
	share, _ = active(warps)
	tell(&out.SMOccupancy, has, share)
	share, seconds = active(dram)
	tell(&out.DramActive, has, share)
	tell(&out.DramActiveTime, has, seconds)
	for i := range out.PipeActive {
		share, seconds = active(pipes + unit(i))
		tell(&out.PipeActive[i], has, share)
		tell(&out.PipeActiveTime[i], has, seconds)
	}
}
