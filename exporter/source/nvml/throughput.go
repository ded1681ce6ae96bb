//go:build cgo

package nvml

import (
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// throughput measures PCI Express in the background: the driver takes 20 ms for each direction,
// which no scrape may wait for.
type throughput struct {
	now  func() time.Time
	mu   sync.Mutex
	last [2]metric.Value
	at   time.Time
}

// counters are the driver's names of the directions, in the order of the spec.
var counters = [...]nvml.PcieUtilCounter{
	telemetry.NetworkIoDirectionTransmit: nvml.PCIE_UTIL_TX_BYTES,
	telemetry.NetworkIoDirectionReceive:  nvml.PCIE_UTIL_RX_BYTES,
}

// measure measures in the background until the library is closed or the driver hands the device out again.
func (h *handle) measure(of *given, t *throughput) {
	r := h.reader
	r.background.Go(func() {
		for r.pause(samplePeriod) {
			r.gate.enter()
			over := h.given.Load() != of
			if !over {
				t.measure(of.dev)
			}
			r.gate.leave()
			if over {
				return
			}
		}
	})
}

func (t *throughput) measure(dev device) {
	var next [2]metric.Value
	for i, c := range counters {
		n, ret := dev.GetPcieThroughput(c)
		why, _ := reason(ret)
		put(&next[i], why, "By/s", scaleLinksThroughput, n)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.at = next, t.now()
}

// read serves the last measurement, unless the driver hangs and it is old.
func (t *throughput) read(out *[2]metric.Value) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range out {
		if t.now().Sub(t.at) > staleAfter {
			out[i].Fail(metric.NoData)
		} else {
			out[i] = t.last[i]
		}
	}
}
