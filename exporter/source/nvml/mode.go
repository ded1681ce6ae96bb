//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// mode reads how the device is set; whether MIG is on has been read before all else.
func mode(p *pass, out *telemetry.Mode) {
	dev := p.dev
	n, why := call(p, askPerformance, 0, dev.GetPerformanceState)
	if why == nil && n == nvml.PSTATE_UNKNOWN {
		why = metric.NoData
	} else if why == nil && (n < nvml.PSTATE_0 || n > nvml.PSTATE_15) {
		why = metric.Implausible
	}
	keep(&out.PerformanceState, why, float64(n))
	enabled(p, &out.PersistenceEnabled, askPersistence, dev.GetPersistenceMode)
	enabled(p, &out.DisplayActive, askDisplay, dev.GetDisplayActive)
	enabled(p, &out.AccountingEnabled, askAccounting, dev.GetAccountingMode)
	c, why := call(p, askC2C, 0, dev.C2CModeV1)
	put(&out.C2cEnabled, why, state, whole, c.IsC2cEnabled)
	if p.down == nil { // the driver's answer is not the device's
		keep(&out.ConfidentialComputeEnabled, p.h.reader.confidential.why, p.h.reader.confidential.enabled)
	}
	m, why := call(p, askComputeMode, 0, dev.GetComputeMode)
	if why == nil && (m < 0 || m > lastState) {
		why = metric.Implausible
	}
	holds := min(telemetry.ComputeMode(m), telemetry.ComputeModeUnknown) // the spec's members are the driver's numbers
	for i := range out.ComputeMode {
		keepState(&out.ComputeMode[i], why, telemetry.ComputeMode(i) == holds)
	}
}

// enabled reads one of the driver's switches.
func enabled(p *pass, v *metric.Value, q question, ask func() (nvml.EnableState, nvml.Return)) {
	read(p, v, q, 0, state, whole, ask)
}

// keep keeps a number already in the spec's unit and known to be sound, or the reason there is none.
func keep(v *metric.Value, why *metric.Reason, n float64) {
	switch why {
	case nil:
		v.Set(n)
	case metric.Unread: // nothing was asked
	default:
		v.Fail(why)
	}
}

func keepState(v *metric.Value, why *metric.Reason, holds bool) {
	n := 0.
	if holds {
		n = 1
	}
	keep(v, why, n)
}
