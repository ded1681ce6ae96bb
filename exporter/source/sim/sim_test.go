package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source/sourcetest"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// longEnough is a time after which every sort of fault has happened to a board.
const longEnough = 200 * 24 * time.Hour

func TestSpecIsRead(t *testing.T) {
	c, devices := start(t, "h100x1", 1)
	c.moveTo(longEnough)
	sourcetest.SpecIsRead(t, "sim", telemetry.DeviceFamilies, read(t, devices[0]))
}

// What the spec lists for sim has a number on some board, and a reason on every other.
func TestMixedHasEveryMetric(t *testing.T) {
	c, devices := start(t, "mixed", 1)
	c.moveTo(longEnough)
	given := map[string]bool{}
	for _, d := range devices {
		x := read(t, d)
		everyNumber(x, func(d *metric.Desc, _ string, _ float64) { given[d.Name] = true })
		for _, f := range telemetry.DeviceFamilies {
			for i, row := range f.Rows {
				if slices.Contains(f.Desc.Sources, "sim") && row(x).Why() == metric.Unread {
					t.Errorf("%s: %s{%s} is not read", d.Identity().Model, f.Desc.Name, f.Desc.Rows[i].Text())
				}
			}
		}
	}
	for _, f := range telemetry.DeviceFamilies {
		if slices.Contains(f.Desc.Sources, "sim") && !given[f.Desc.Name] {
			t.Errorf("%s has a number on no board", f.Desc.Name)
		}
	}
}

// gaps are the metrics a board of a model does not have at all, and some of those it has in part.
var gaps = map[string]struct{ lacks, has string }{
	"h100": {"gpu.temperature.limit",
		`gpu.temperature{gpu_temperature_sensor="memory"} gpu.temperature.margin{} gpu.ecc.lifetime.errors{gpu_ecc_error_type="corrected"} gpu.xid.errors{gpu_xid="94"} gpu.throttle.time{gpu_throttle_cause="sw_power_cap"} -gpu.throttle.time{gpu_throttle_cause="hw_slowdown"}`},
	"h200": {"gpu.temperature.limit", `gpu.temperature{gpu_temperature_sensor="memory"}`},
	"b200": {"gpu.temperature.limit", `gpu.temperature{gpu_temperature_sensor="memory"}`},
	"a100": {"gpu.temperature.margin", `gpu.temperature.limit{gpu_temperature_limit_type="memory_max"} gpu.temperature{gpu_temperature_sensor="memory"}`},
	"l40s": {"gpu.fabric.links gpu.temperature.limit", `gpu.temperature.margin{} gpu.ecc.enabled{gpu_mode_phase="current"} -gpu.temperature{gpu_temperature_sensor="memory"}`},
	"rtx4090": {"gpu.ecc.enabled gpu.ecc.errors gpu.ecc.lifetime.errors gpu.fabric.links gpu.row_remap.failure gpu.row_remap.pending gpu.row_remap.rows gpu.temperature.margin",
		`gpu.energy{} gpu.temperature.limit{gpu_temperature_limit_type="slowdown"} -gpu.temperature.limit{gpu_temperature_limit_type="memory_max"} -gpu.temperature{gpu_temperature_sensor="memory"} -gpu.xid.errors{gpu_xid="63"} -gpu.xid.errors{gpu_xid="94"}`},
	"mi300x": {"gpu.ecc.enabled gpu.ecc.lifetime.errors gpu.fabric.links gpu.memory.reserved gpu.row_remap.failure gpu.row_remap.pending gpu.row_remap.rows gpu.temperature.margin gpu.throttle.active gpu.throttle.reason gpu.throttle.time gpu.xid.errors",
		`gpu.ecc.errors{gpu_ecc_error_type="corrected"} gpu.memory.free{} -gpu.clock.frequency{gpu_clock_type="sm"} -gpu.power.limit{gpu_power_limit_type="requested"}`},
	"gaudi3": {"gpu.clock.frequency gpu.clock.limit gpu.fabric.links gpu.media.utilization gpu.memory.controller.utilization gpu.memory.reserved gpu.row_remap.failure gpu.row_remap.pending gpu.row_remap.rows gpu.temperature.margin gpu.throttle.reason gpu.throttle.time gpu.xid.errors",
		`gpu.throttle.active{gpu_throttle_bucket="power"} -gpu.throttle.active{gpu_throttle_bucket="hw"} -gpu.temperature{gpu_temperature_sensor="memory"}`},
}

func TestGapsAreThoseOfTheModel(t *testing.T) {
	if got, want := slices.Sorted(maps.Keys(gaps)), slices.Sorted(slices.Values(modelIDs())); !slices.Equal(got, want) {
		t.Errorf("gaps of %v, models are %v", got, want)
	}
	for id, want := range gaps {
		c, devices := start(t, id+"x1", 1)
		c.moveTo(longEnough)
		metrics, series := map[string]bool{}, map[string]bool{}
		everyNumber(read(t, devices[0]), func(d *metric.Desc, s string, _ float64) { metrics[d.Name], series[s] = true, true })
		var lacks []string
		for _, f := range telemetry.DeviceFamilies {
			if slices.Contains(f.Desc.Sources, "sim") && !metrics[f.Desc.Name] {
				lacks = append(lacks, f.Desc.Name)
			}
		}
		slices.Sort(lacks)
		if got := strings.Join(lacks, " "); got != want.lacks {
			t.Errorf("%s lacks %s\nwant %s", id, got, want.lacks)
		}
		for s := range strings.FieldsSeq(want.has) {
			s, not := strings.CutPrefix(s, "-")
			if series[s] == not {
				t.Errorf("%s gives %s: %v", id, s, series[s])
			}
		}
	}
}

// The counters of the driver go on when the source is closed and opened again.
func TestOpenedAgain(t *testing.T) {
	c := &clock{t: noon}
	s, err := New(Config{Node: "h100x1", Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	c.moveTo(time.Hour)
	first := number(t, read(t, list(t, s)[0]).Power.Energy)
	if again := number(t, read(t, list(t, s)[0]).Power.Energy); again != first || first == 0 {
		t.Errorf("energy %v, after opening again %v", first, again)
	}
}

// With -race: devices are read at the same time, and the wall clock is the default.
func TestDevicesAreReadAtOnce(t *testing.T) {
	s, err := New(Config{Node: "mixed"})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, d := range list(t, s) {
		all.Go(func() {
			for range 50 {
				if why := d.Read(context.Background(), new(telemetry.Device)); why != nil {
					t.Error(why)
				}
			}
		})
	}
	all.Wait()
}

// What was read stays as it was: the buffer becomes part of a snapshot.
func TestReadingsAreNotShared(t *testing.T) {
	c, devices := start(t, "h100x1", 1)
	c.moveTo(longEnough)
	buffer := read(t, devices[0])
	before := buffer.XID.Errors[0]
	kept := &buffer.XID.Errors[0]
	c.moveTo(2 * longEnough)
	devices[0].Read(context.Background(), buffer)
	after := buffer.XID.Errors[0]
	if was, now := number(t, before.Value), number(t, after.Value); now <= was {
		t.Fatalf("XID errors %v, later %v", was, now)
	}
	if *kept != before {
		t.Errorf("a reading taken as %v is now %v", before, *kept)
	}
	if before.Labels != after.Labels {
		t.Error("labels are made at each read")
	}
}

func TestReadAllocatesLittle(t *testing.T) {
	c, devices := start(t, "h100x1", 1)
	c.moveTo(longEnough)
	out := new(telemetry.Device)
	since := longEnough
	if n := testing.AllocsPerRun(100, func() {
		since += 15 * time.Second
		c.moveTo(since)
		devices[0].Read(context.Background(), out)
	}); n > 1 {
		t.Errorf("%v allocations a read; only the slice of XIDs needs one", n)
	}
}

// A board looked at every 15 s, as Prometheus does.
func BenchmarkRead(b *testing.B) {
	c, devices := start(b, "h100x1", 1)
	since := longEnough
	b.ReportAllocs()
	for b.Loop() {
		since += 15 * time.Second
		c.moveTo(since)
		devices[0].Read(context.Background(), new(telemetry.Device))
	}
}

// A board nobody looked at for ever longer.
func BenchmarkReadAfterADay(b *testing.B) {
	for b.Loop() {
		c, devices := start(b, "h100x1", 1)
		c.moveTo(24*time.Hour - time.Second)
		devices[0].Read(context.Background(), new(telemetry.Device))
	}
}
