//go:build cgo

package nvml

import (
	"context"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// handle reads one device while the library is open.
type handle struct {
	dev      device
	has      symbols
	identity telemetry.Identity
	reasons  uint64 // the throttle bits the device can have
	batch    batch
	busy     busy
	history  *history
	watched  bool    // its XIDs reach the listener
	refusals []uint8 // invalid arguments in a row, by question
}

// history is what is counted of a device since the exporter started; it outlives the library
// being closed and opened again.
type history struct {
	busy float64 // seconds; the device's own worker alone touches it
	xids xids
}

func (h *handle) Identity() *telemetry.Identity { return &h.identity }

// Read asks everything the spec says NVML gives, each question once; one line is one file of this
// package. A device that is lost still has the XIDs that tell why.
func (h *handle) Read(_ context.Context, out *telemetry.Device) *metric.Reason {
	p := pass{h: h, out: out}
	if h.watched {
		out.XID.Errors = h.history.xids.all()
	}
	power(&p, &out.Power)
	thermal(&p, &out.Thermal)
	memory(&p, &out.Memory)
	clock(&p, &out.Clock)
	utilization(&p, &out.Utilization)
	throttle(&p, &out.Throttle)
	h.batch.read(&p) // power limits, memory temperature, ECC, throttle times
	return p.down
}

// Sample takes in the utilization samples before the driver forgets them. What fails is told by Read.
func (h *handle) Sample(context.Context) { _, _ = h.drain() }

func (h *handle) SamplePeriod() time.Duration { return samplePeriod }
