package host

import (
	"math"

	"github.com/prometheus/procfs"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// cpuTime holds the highest time seen of each mode. The kernel lets idle and iowait step back by a
// little, because it estimates them for CPUs that sleep, and steal when a guest moves to another
// machine. Served as it comes, each step would read as a restart from 0, and increase() would count
// the whole time since boot again.
type cpuTime [telemetry.CPUModeSteal + 1]float64

// read fills the metrics of /proc/stat. It returns why the whole file gave nothing.
func (t *cpuTime) read(s *telemetry.System, stat procfs.Stat) *metric.Reason {
	// btime stands after the lines of the CPUs. procfs reads a missing column or line as 0, so
	// without btime the file is cut short, or no such file at all.
	if stat.BootTime == 0 {
		return metric.Failed
	}
	if n := len(stat.CPU); n == 0 {
		s.CPUOnline.Fail(metric.Unsupported)
	} else {
		s.CPUOnline.Set(float64(n))
	}
	now := modes(stat.CPUTotal)
	why := plausible(now)
	for mode, seconds := range now {
		if why != nil {
			s.CPUTime[mode].Fail(why)
			continue
		}
		t[mode] = max(t[mode], seconds)
		s.CPUTime[mode].Set(t[mode])
	}
	return nil
}

// modes sorts the columns of the cpu line by mode. The time of virtual guests has columns of its
// own but is part of user and nice already, so it is not added.
func modes(c procfs.CPUStat) cpuTime {
	return cpuTime{
		telemetry.CPUModeUser:      c.User,
		telemetry.CPUModeNice:      c.Nice,
		telemetry.CPUModeSystem:    c.System,
		telemetry.CPUModeIdle:      c.Idle,
		telemetry.CPUModeIowait:    c.Iowait,
		telemetry.CPUModeInterrupt: c.IRQ + c.SoftIRQ,
		telemetry.CPUModeSteal:     c.Steal,
	}
}

// plausible says why times since boot can not be true, or nil.
func plausible(t cpuTime) *metric.Reason {
	// Sandboxes that fake the file write 0 everywhere, and procfs gives 0 when there is no line.
	if t == (cpuTime{}) {
		return metric.Unsupported
	}
	for _, seconds := range t {
		if !(seconds >= 0 && seconds <= math.MaxInt64) { // written so that NaN is refused too
			return metric.Implausible
		}
	}
	// Every machine was idle for an instant since it started: here columns are missing.
	if t[telemetry.CPUModeIdle] == 0 {
		return metric.Implausible
	}
	return nil
}
