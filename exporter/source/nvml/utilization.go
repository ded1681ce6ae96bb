//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func utilization(p *pass, out *telemetry.Utilization) {
	dev := p.dev
	rates, why := call(p, askUtilization, 0, dev.GetUtilizationRates)
	put(&out.Utilization, why, ratio, scaleUtilizationUtilization, rates.Gpu)
	put(&out.MemoryControllerUtilization, why, ratio, scaleUtilizationMemoryControllerUtilization, rates.Memory)

	engines := &out.MediaUtilization
	engine(p, &engines[telemetry.MediaEngineEncoder], askEncoder, dev.GetEncoderUtilization)
	engine(p, &engines[telemetry.MediaEngineDecoder], askDecoder, dev.GetDecoderUtilization)
	engine(p, &engines[telemetry.MediaEngineJPEG], askJPEG, dev.GetJpgUtilization)
	engine(p, &engines[telemetry.MediaEngineOFA], askOFA, dev.GetOfaUtilization)
	if p.h.reader.chosen.metrics["gpu.busy.time"] {
		busyTime(p, &out.BusyTime)
	}
}

// engine reads one of the calls that also tell the length of the sample period.
func engine(p *pass, v *metric.Value, q question, ask func() (uint32, uint32, nvml.Return)) {
	read(p, v, q, 0, ratio, scaleUtilizationMediaUtilization, func() (uint32, nvml.Return) {
		n, _, ret := ask()
		return n, ret
	})
}
