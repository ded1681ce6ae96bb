package snapshot

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// machine is a source that reads the host and lists no devices.
type machine struct {
	driver
	why atomic.Pointer[metric.Reason]
}

func (m *machine) ReadHost(_ context.Context, h *telemetry.Host) *metric.Reason {
	time.Sleep(time.Millisecond)
	h.System.MemoryLimit.Set(64)
	h.System.CPUOnline.Fail(metric.Implausible)
	return m.why.Load()
}

func (m *machine) source() source.Source {
	return source.Source{Name: "host", Open: func(context.Context) (source.Reader, error) { return m, nil }}
}

// The host is read beside the devices for as long as the source is open; what fails is counted.
func TestHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(machine)
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{newGPU(0)}}).source("nvml"), m.source()}})
		for range 3 {
			s := f.Snapshot(context.Background())
			if s.Host == nil || len(s.Devices) != 1 {
				t.Fatalf("host %v, %d devices", s.Host, len(s.Devices))
			}
			if n, _ := s.Host.System.MemoryLimit.Get(); n != 64 {
				t.Errorf("memory %v", n)
			}
			time.Sleep(minute) // devices are listed again
		}
		m.why.Store(metric.Failed)
		h := f.Snapshot(context.Background())
		if h.Host != nil {
			t.Error("a host that failed as a whole has readings")
		}
		want := []Fault{{"host", "*", "failed", 0}, {"host", "system.cpu.online", "implausible", 3}} // the first is born as 0
		if !slices.Equal(h.Health.Faults, want) {
			t.Errorf("faults %+v, want %+v", h.Health.Faults, want)
		}
		if s := h.Health.Sources[1]; s.Name != "host" || s.Devices != 0 || s.State != telemetry.SourceStateServing {
			t.Errorf("health %+v", s)
		}
	})
}

// The durations in a picture do not change with later reads.
func TestDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, Config{Sources: []source.Source{new(machine).source()}})
		first := f.Snapshot(context.Background()).Health.Sources[0].Duration
		time.Sleep(time.Minute)
		second := f.Snapshot(context.Background()).Health.Sources[0].Duration
		if first == nil || first.Sum != 0.001 || second.Sum != 0.002 {
			t.Errorf("durations %+v and %+v, want a millisecond each", first, second)
		}
	})
}

// Devices stand by vendor and index, however they are listed.
func TestOrderOfDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		amd := newGPU(7)
		amd.id.Vendor = "amd"
		d := &driver{devices: []source.Device{newGPU(1), newGPU(0), amd}}
		s := run(t, Config{Sources: []source.Source{d.source("nvml")}}).Snapshot(context.Background())
		for i, want := range []string{"GPU-h", "GPU-a", "GPU-b"} {
			if got := s.Devices[i].Identity.UUID; got != want {
				t.Errorf("device %d is %s, want %s", i, got, want)
			}
		}
	})
}

// A clock that was set back does not make the last picture fresh until it has caught up.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Int64
		now.Store(1e9)
		g := newGPU(0)
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{g}}).source("nvml")}, Now: func() time.Time { return time.Unix(now.Load(), 0) }})
		f.Snapshot(context.Background())
		now.Store(1e9 - 3600)
		if f.Snapshot(context.Background()); g.reads.Load() != 2 {
			t.Errorf("%d reads", g.reads.Load())
		}
	})
}
