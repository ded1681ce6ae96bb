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
	reasons  uint64          // the throttle bits the device can have
	chosen   map[string]bool // groups
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

// Read asks everything the spec says NVML gives, each question once; a group is one file of this
// package, or numbered fields alone. A device that is lost still has the XIDs that tell why.
func (h *handle) Read(_ context.Context, out *telemetry.Device) *metric.Reason {
	p := pass{h: h, out: out}
	if h.watched {
		out.XID.Errors = h.history.xids.all()
	}
	for _, g := range groups {
		if h.chosen[g.name] {
			g.read(&p, out)
		}
	}
	h.batch.read(&p) // power limits, memory temperature, ECC, throttle times
	return p.down
}

// groups are the groups of the spec that are read by calls.
var groups = []struct {
	name string
	read func(*pass, *telemetry.Device)
}{
	{"power", func(p *pass, d *telemetry.Device) { power(p, &d.Power) }},
	{"thermal", func(p *pass, d *telemetry.Device) { thermal(p, &d.Thermal) }},
	{"memory", func(p *pass, d *telemetry.Device) { memory(p, &d.Memory) }},
	{"clock", func(p *pass, d *telemetry.Device) { clock(p, &d.Clock) }},
	{"utilization", func(p *pass, d *telemetry.Device) { utilization(p, &d.Utilization) }},
	{"throttle", func(p *pass, d *telemetry.Device) { throttle(p, &d.Throttle) }},
}

// Sample takes in the utilization samples before the driver forgets them. What fails is told by Read.
func (h *handle) Sample(context.Context) {
	if h.chosen["utilization"] {
		_, _ = h.drain()
	}
}

func (h *handle) SamplePeriod() time.Duration { return samplePeriod }
