//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func utilization(p *pass, out *telemetry.Utilization) {
	if p.down != nil {
		return
	}
	dev := p.h.dev
	rates, ret := dev.GetUtilizationRates()
	why := p.why(ret)
	put(&out.Utilization, why, ratio, percent, rates.Gpu)
	put(&out.MemoryControllerUtilization, why, ratio, percent, rates.Memory)

	engines := &out.MediaUtilization
	engine(p, &engines[telemetry.MediaEngineEncoder], dev.GetEncoderUtilization)
	engine(p, &engines[telemetry.MediaEngineDecoder], dev.GetDecoderUtilization)
	if p.h.has.jpeg {
		engine(p, &engines[telemetry.MediaEngineJPEG], dev.GetJpgUtilization)
	} else {
		engines[telemetry.MediaEngineJPEG].Fail(metric.Unsupported)
	}
	if p.h.has.ofa {
		engine(p, &engines[telemetry.MediaEngineOFA], dev.GetOfaUtilization)
	} else {
		engines[telemetry.MediaEngineOFA].Fail(metric.Unsupported)
	}
	busyTime(p, &out.BusyTime)
}

// engine reads one of the calls that also tell the length of the sample period.
func engine(p *pass, v *metric.Value, ask func() (uint32, uint32, nvml.Return)) {
	read(p, v, ratio, percent, func() (uint32, nvml.Return) {
		n, _, ret := ask()
		return n, ret
	})
}
