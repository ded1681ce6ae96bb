package snapshot

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func TestConcurrentScrapesShareOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGPU(0)
		g.read = func(context.Context, *telemetry.Device) *metric.Reason { time.Sleep(50 * time.Millisecond); return nil }
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{g}}).source("nvml")}})
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				s := f.Snapshot(context.Background())
				if n, _ := s.Devices[0].Read.Power.Draw.Get(); n != 100 || s.Partial {
					t.Errorf("draw %v, partial %v", n, s.Partial)
				}
			})
		}
		all.Wait()
		if n := g.reads.Load(); n != 1 {
			t.Errorf("%d reads for 200 scrapes", n)
		}
		time.Sleep(2 * time.Second)
		f.Snapshot(context.Background())
		if n := g.reads.Load(); n != 2 {
			t.Errorf("%d reads; a picture older than the maximum age must be taken again", n)
		}
	})
}

func TestHungDeviceCostsItselfOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sick, well := newGPU(0), newGPU(1)
		release := make(chan struct{})
		sick.read = func(context.Context, *telemetry.Device) *metric.Reason { <-release; return nil }
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{sick, well}}).source("nvml")}, MaxAge: time.Millisecond, Hold: time.Second})
		for range 5 {
			start := time.Now()
			s := f.Snapshot(context.Background())
			if took := time.Since(start); took > 2*time.Second {
				t.Fatalf("waited %v", took)
			}
			if got := state(t, &s.Devices[0]); got != telemetry.StateLate {
				t.Errorf("the hung device is %v", got)
			}
			if _, ok := s.Devices[0].Read.Power.Draw.Get(); ok {
				t.Error("the hung device has a reading")
			}
			if n, _ := s.Devices[1].Read.Power.Draw.Get(); n != 101 {
				t.Errorf("the healthy device reads %v", n)
			}
			time.Sleep(time.Second)
		}
		if n := sick.reads.Load(); n != 1 {
			t.Errorf("a hung device was asked %d times", n)
		}
		faults := f.Snapshot(context.Background()).Health.Faults
		if len(faults) != 1 || faults[0].Source != "nvml" || faults[0].Metric != "*" || faults[0].Reason != "late" || faults[0].Count < 5 {
			t.Errorf("faults %+v", faults)
		}
		close(release)
		time.Sleep(5 * time.Second)
		if s := f.Snapshot(context.Background()); state(t, &s.Devices[0]) != telemetry.StateOK {
			t.Error("the device did not come back")
		}
	})
}

// What a late worker writes must not reach a picture already published.
func TestLateBufferIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGPU(0)
		g.read = func(_ context.Context, d *telemetry.Device) *metric.Reason {
			time.Sleep(3 * time.Second)
			d.Power.Draw.Set(666)
			return nil
		}
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{g}}).source("nvml")}})
		s := f.Snapshot(context.Background())
		time.Sleep(10 * time.Second)
		if _, ok := s.Devices[0].Read.Power.Draw.Get(); ok {
			t.Error("a published picture changed")
		}
	})
}

func TestImpatientScrapeGetsWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, quick := newGPU(0), newGPU(1)
		slow.read = func(context.Context, *telemetry.Device) *metric.Reason { time.Sleep(time.Second); return nil }
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{slow, quick}}).source("nvml")}})
		patient := make(chan *Snapshot)
		go func() { patient <- f.Snapshot(context.Background()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		start := time.Now()
		s := f.Snapshot(ctx)
		if took := time.Since(start); took != time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		if !s.Partial || state(t, &s.Devices[0]) != telemetry.StateLate || state(t, &s.Devices[1]) != telemetry.StateOK {
			t.Error("want a partial picture with the quick device")
		}
		if s := <-patient; s.Partial || state(t, &s.Devices[0]) != telemetry.StateOK || len(s.Health.Faults) != 0 {
			t.Error("the patient scrape must not suffer from the impatient one")
		}
	})
}

func TestTwoSourcesOfOneDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newGPU(0), newGPU(0)
		a.read = func(_ context.Context, d *telemetry.Device) *metric.Reason {
			d.Power.Energy.Fail(metric.Unsupported)
			return nil
		}
		b.read = func(_ context.Context, d *telemetry.Device) *metric.Reason {
			d.Power.Draw.Set(1)
			d.Power.Energy.Set(7)
			return nil
		}
		f := run(t, Config{Sources: []source.Source{
			(&driver{devices: []source.Device{b}}).source("sim"), (&driver{devices: []source.Device{a}}).source("nvml"),
		}})
		s := f.Snapshot(context.Background())
		if len(s.Devices) != 1 {
			t.Fatalf("%d devices", len(s.Devices))
		}
		draw, _ := s.Devices[0].Read.Power.Draw.Get()
		energy, _ := s.Devices[0].Read.Power.Energy.Get()
		if draw != 100 || energy != 7 {
			t.Errorf("draw %v, want that of nvml, which the spec lists first; energy %v, want that of the one that has it", draw, energy)
		}
		b.read = func(context.Context, *telemetry.Device) *metric.Reason { return metric.Failed }
		time.Sleep(2 * time.Second)
		if s := f.Snapshot(context.Background()); state(t, &s.Devices[0]) != telemetry.StateOK {
			t.Error("one source that answers is enough")
		}
	})
}

// The XID that tells why a device is lost must not be lost with it.
func TestLostDeviceKeepsItsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGPU(0)
		g.read = func(_ context.Context, d *telemetry.Device) *metric.Reason {
			*d = telemetry.Device{}
			k := metric.Keyed{Labels: telemetry.XIDErrorsAttributes{XID: 79}.Labels()}
			k.Value.Set(1)
			d.XID.Errors = []metric.Keyed{k}
			return metric.Lost
		}
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{g}}).source("nvml")}})
		s := f.Snapshot(context.Background())
		if state(t, &s.Devices[0]) != telemetry.StateLost || len(s.Devices[0].Read.XID.Errors) != 1 {
			t.Errorf("state %v, XIDs %v", state(t, &s.Devices[0]), s.Devices[0].Read.XID.Errors)
		}
	})
}

func TestPanicCostsTheReadingOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sick, well := newGPU(0), newGPU(1)
		sick.read = func(context.Context, *telemetry.Device) *metric.Reason { panic("index out of range") }
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{sick, well}}).source("nvml")}})
		s := f.Snapshot(context.Background())
		if state(t, &s.Devices[0]) != telemetry.StateFailed || state(t, &s.Devices[1]) != telemetry.StateOK {
			t.Error("want the sick device failed and the other well")
		}
		if s.Health.Faults[0].Reason != "panicked" {
			t.Errorf("faults %+v", s.Health.Faults)
		}
	})
}
