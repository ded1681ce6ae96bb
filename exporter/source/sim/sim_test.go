package sim

import (
	"context"
	"slices"
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
