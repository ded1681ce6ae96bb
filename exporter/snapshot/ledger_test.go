package snapshot

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// interval is how often the servers of these tests scrape.
const interval = 30 * time.Second

// faultCount returns the counter of a metric's faults in a snapshot.
func faultCount(s *Snapshot, name string) (n uint64, there bool) {
	for _, f := range s.Health.Faults {
		if f.Metric == name {
			return f.Count, true
		}
	}
	return 0, false
}

func TestLedger_CountsFaultsOfEveryScopeAndOfKeyedReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGPU(0)
		g.read = func(_ context.Context, d *telemetry.Device) *metric.Reason {
			d.Power.Draw.Fail(metric.Implausible)
			d.Power.Energy.Fail(metric.Unsupported) // not a fault
			d.Thermal.TemperatureMargin.Fail(metric.Denied)
			xid := metric.Keyed{Labels: telemetry.XIDErrorsAttributes{XID: 79}.Labels()}
			xid.Value.Fail(metric.Failed)
			d.XID.Errors = []metric.Keyed{xid}
			d.Links = make([]telemetry.Part[telemetry.Link], 2)
			for i := range d.Links {
				d.Links[i].Labels = telemetry.LinkAttributes{LinkID: int64(i)}.Labels()
				d.Links[i].Read.Links.Up.Fail(metric.Failed)
			}
			d.Partitions = make([]telemetry.Part[telemetry.Partition], 1)
			d.Partitions[0].Read.Partitions.MemoryUsage.Fail(metric.Failed)
			d.Processes = make([]telemetry.Part[telemetry.Process], 1)
			d.Processes[0].Read.Processes.MemoryUsage.Fail(metric.Implausible)
			return nil
		}
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{g}}).source("nvml")}})
		f.Snapshot(context.Background())
		time.Sleep(interval)
		s := f.Snapshot(context.Background())
		want := []Fault{
			{"nvml", "gpu.link.up", "failed", 4}, {"nvml", "gpu.partition.memory.usage", "failed", 2}, {"nvml", "gpu.power.draw", "implausible", 2},
			{"nvml", "gpu.process.memory.usage", "implausible", 2}, {"nvml", "gpu.xid.errors", "failed", 2},
		}
		if !slices.Equal(s.Health.Faults, want) || s.Health.Reads != 2 {
			t.Errorf("%d reads, faults %+v, want 2 and %+v", s.Health.Reads, s.Health.Faults, want)
		}
	})
}

// Two servers scrape half an interval apart, and a page is read in between: the first reader must not take
// the 0 from the others.
func TestLedger_EveryReaderSeesANewFaultAsZeroFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, bad := newGPU(0), false
		g.read = func(_ context.Context, d *telemetry.Device) *metric.Reason {
			if bad {
				d.Power.Draw.Fail(metric.Failed)
			}
			return nil
		}
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{g}}).source("nvml")}})
		seen := map[string][]uint64{}
		scrape := func(server string) {
			if n, there := faultCount(f.Snapshot(context.Background()), "gpu.power.draw"); there {
				seen[server] = append(seen[server], n)
			}
		}
		for i := range 4 {
			bad = i == 1 // one failure, in a scrape of the first server
			scrape("first")
			bad = false
			time.Sleep(interval / 4)
			scrape("page")
			time.Sleep(interval / 4)
			scrape("second")
			time.Sleep(interval / 2)
		}
		for server, want := range map[string][]uint64{"first": {0, 1, 1}, "second": {0, 1, 1}, "page": {0, 1, 1}} {
			if !slices.Equal(seen[server], want) {
				t.Errorf("the %s reader sees %v, want %v", server, seen[server], want)
			}
		}
	})
}

// A clock that is set back must not take a count back to 0.
func TestLedger_LiveCountStaysLive(t *testing.T) {
	l, now := newLedger(interval), time.Unix(1_800_000_000, 0)
	why := &metric.Reason{Text: "failed", Fault: true}
	slots := []slot{{worker: &worker{source: "nvml"}, reading: reading{why: why}}}
	for i, after := range []time.Duration{0, interval, -time.Hour} {
		l.book(now.Add(after), slots)
		if got, want := l.health().Faults[0].Count, []uint64{0, 2, 3}[i]; got != want {
			t.Errorf("at %v: %d, want %d", after, got, want)
		}
	}
}

// observations counts what is in a histogram.
func observations(h *metric.Histogram) (n uint64) {
	if h == nil {
		return 0
	}
	for _, c := range h.Counts {
		n += c
	}
	return n
}

func TestFeed_LateReadsAreInTheDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGPU(0)
		g.read = func(context.Context, *telemetry.Device) *metric.Reason {
			time.Sleep(2600 * time.Millisecond)
			return nil
		}
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{g}}).source("nvml")}})
		for range 5 {
			if got := states(t, f.Snapshot(context.Background())); got != "late" {
				t.Fatalf("device is %s, want late", got)
			}
			time.Sleep(10 * time.Second)
		}
		h := f.Snapshot(context.Background()).Health.Sources[0].Duration // the sixth read has not ended yet
		if n := observations(h); n != 5 || g.reads.Load() != 6 {
			t.Fatalf("%d observations of %d reads, want 5 of 6", n, g.reads.Load())
		}
		if beyond := h.Counts[len(h.Counts)-1]; beyond != 5 || h.Sum != 13 {
			t.Errorf("%d observations beyond the last bound, %v s in all; want 5 and 13", beyond, h.Sum)
		}
	})
}

func TestFeed_HungReadIsInTheDurationsOnceItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, hang := newGPU(0), make(chan struct{})
		g.read = func(context.Context, *telemetry.Device) *metric.Reason { <-hang; return nil }
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{g}}).source("nvml")}})
		for range 5 {
			if h := f.Snapshot(context.Background()).Health.Sources[0].Duration; h != nil {
				t.Fatalf("durations %+v while the only read hangs", h)
			}
			time.Sleep(10 * time.Second)
		}
		close(hang)
		synctest.Wait()
		f.Snapshot(context.Background())
		h := f.Snapshot(context.Background()).Health.Sources[0].Duration
		if want := uint64(g.reads.Load()); observations(h) != want || want < 2 || h.Counts[len(h.Counts)-1] != 1 {
			t.Errorf("durations %+v after %d reads, want one each and one of them long", h, want)
		}
	})
}
