//go:build cgo

package nvml

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func memory(p *pass, out *telemetry.Memory) {
	if p.down != nil {
		return
	}
	if !p.h.has.memoryV2 {
		memoryBefore(p, out)
		return
	}
	m, ret := p.h.dev.GetMemoryInfo_v2()
	why := p.why(ret)
	if why == nil && (m.Total == 0 || m.Used > m.Total || m.Free > m.Total || m.Reserved > m.Total) {
		why = metric.Implausible
	}
	put(&out.Limit, why, bytes, whole, m.Total)
	put(&out.Usage, why, bytes, whole, m.Used)
	put(&out.Free, why, bytes, whole, m.Free)
	put(&out.Reserved, why, bytes, whole, m.Reserved)
}

// memoryBefore reads a driver older than R510, whose used memory includes what it reserves itself.
// The two can not be told apart, so neither is given.
func memoryBefore(p *pass, out *telemetry.Memory) {
	m, ret := p.h.dev.GetMemoryInfo()
	why := p.why(ret)
	if why == nil && (m.Total == 0 || m.Used > m.Total || m.Free > m.Total) {
		why = metric.Implausible
	}
	put(&out.Limit, why, bytes, whole, m.Total)
	put(&out.Free, why, bytes, whole, m.Free)
	out.Usage.Fail(metric.Unsupported)
	out.Reserved.Fail(metric.Unsupported)
}
