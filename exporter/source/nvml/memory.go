//go:build cgo

package nvml

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func memory(p *pass, out *telemetry.Memory) {
	if p.h.answers.absent[askMemoryV2] {
		memoryBefore(p, out)
	} else {
		m, why := call(p, askMemoryV2, 0, p.dev.GetMemoryInfo_v2)
		why = within(why, m.Total, m.Used, m.Free, m.Reserved)
		put(&out.Limit, why, bytes, whole, m.Total)
		put(&out.Usage, why, bytes, whole, m.Used)
		put(&out.Free, why, bytes, whole, m.Free)
		put(&out.Reserved, why, bytes, whole, m.Reserved)
	}
	b, why := call(p, askBAR1, 0, p.dev.GetBAR1MemoryInfo)
	why = within(why, b.Bar1Total, b.Bar1Used)
	put(&out.Bar1Limit, why, bytes, whole, b.Bar1Total)
	put(&out.Bar1Usage, why, bytes, whole, b.Bar1Used)
	c, why := call(p, askProtected, 0, p.dev.GetConfComputeProtectedMemoryUsage)
	if c.Total > 0 { // 0 of 0 while confidential computing is off
		why = within(why, c.Total, c.Used)
	}
	put(&out.ProtectedLimit, why, bytes, whole, c.Total)
	put(&out.ProtectedUsage, why, bytes, whole, c.Used)
}

// memoryBefore reads a driver older than R510, whose used memory includes what it reserves itself.
// The two can not be told apart, so neither is given.
func memoryBefore(p *pass, out *telemetry.Memory) {
	m, why := call(p, askMemory, 0, p.dev.GetMemoryInfo)
	why = within(why, m.Total, m.Used, m.Free)
	put(&out.Limit, why, bytes, whole, m.Total)
	put(&out.Free, why, bytes, whole, m.Free)
	out.Usage.Fail(metric.Unsupported)
	out.Reserved.Fail(metric.Unsupported)
}

// within refuses an answer whose whole is no size, or whose parts are larger than it.
func within(why *metric.Reason, total uint64, parts ...uint64) *metric.Reason {
	bad := total == 0 || !plausible(bytes, float64(total))
	for _, n := range parts {
		bad = bad || n > total
	}
	if why == nil && bad {
		return metric.Implausible
	}
	return why
}
