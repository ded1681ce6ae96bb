//go:build cgo

package nvml

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// It is measured beside the reads, of which none waits for it, and ends with what it measures.
func TestThroughput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // at whose end no goroutine may be left
		d := answering("GPU-0")
		var asked, ret atomic.Int64
		var hangs atomic.Pointer[chan struct{}]
		d.GetPcieThroughputFunc = func(c nvml.PcieUtilCounter) (uint32, nvml.Return) {
			asked.Add(1)
			time.Sleep(20 * time.Millisecond)
			if c := hangs.Load(); c != nil {
				<-*c
			}
			return 1000 * uint32(c+1), nvml.Return(ret.Load())
		}
		on := choose(func(d *metric.Desc) bool { return d.Name == "gpu.link.throughput" })
		r, err := open(newFakeLibrary(d), config(), newArchive(), on)
		if err != nil {
			t.Fatal(err)
		}
		n := &node{TB: t, reader: r}
		h := n.list()[0]
		rates := func() [2]metric.Value {
			start := time.Now()
			out := n.read(h)
			if took := time.Since(start); took != 0 {
				t.Errorf("a read waited %v", took)
			}
			return linksOf(out, pcie)[0].Throughput
		}
		both := func(what string, why *metric.Reason) {
			for _, v := range rates() {
				want(t, what, v, why)
			}
		}
		both("before the first", metric.NoData)
		time.Sleep(samplePeriod + time.Second)
		want(t, "sent", rates()[telemetry.NetworkIoDirectionTransmit], 1e6)
		want(t, "received", rates()[telemetry.NetworkIoDirectionReceive], 2e6)
		ret.Store(int64(nvml.ERROR_NOT_SUPPORTED))
		time.Sleep(samplePeriod)
		both("not supported", metric.Unsupported)
		ret.Store(int64(nvml.SUCCESS))
		time.Sleep(samplePeriod)
		want(t, "sent again", rates()[telemetry.NetworkIoDirectionTransmit], 1e6)

		hang := make(chan struct{})
		hangs.Store(&hang)
		time.Sleep(staleAfter - samplePeriod)
		want(t, "sent, while the driver hangs for a moment", rates()[telemetry.NetworkIoDirectionTransmit], 1e6)
		time.Sleep(2 * samplePeriod)
		both("what the driver said before it hung", metric.NoData)
		hangs.Store(nil)
		close(hang)

		calling(d, "GPU-new") // and nobody reads that
		n.list()
		time.Sleep(2 * samplePeriod)
		before := asked.Load()
		time.Sleep(10 * samplePeriod)
		if n := asked.Load() - before; n != 0 {
			t.Errorf("measured %d times of a device that is gone", n)
		}
		closed(t, r)
	})
}

// Each handing out has one measurement, not one more.
func TestThroughputIsMeasuredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := answering("GPU-0")
		var asked atomic.Int64
		d.GetPcieThroughputFunc = func(nvml.PcieUtilCounter) (uint32, nvml.Return) {
			asked.Add(1)
			return 1, nvml.SUCCESS
		}
		on := choose(func(d *metric.Desc) bool { return d.Name == "gpu.link.throughput" })
		r, err := open(newFakeLibrary(d), config(), newArchive(), on)
		if err != nil {
			t.Fatal(err)
		}
		n := &node{TB: t, reader: r}
		h := n.list()[0]
		for _, uuid := range []string{"GPU-0", "GPU-new", "GPU-0", "GPU-new", "GPU-0"} {
			calling(d, uuid)
			n.list()
			n.why(h)
		}
		time.Sleep(2*samplePeriod + time.Second)
		before := asked.Load()
		time.Sleep(10 * samplePeriod)
		if n := asked.Load() - before; n != 20 {
			t.Errorf("asked %d times in ten periods, want 20: each direction once", n)
		}
		closed(t, r)
	})
}
