package sim

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

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

func TestXID_CodeIsZeroForTheHold(t *testing.T) {
	const hold = 30 * time.Second
	now := time.Unix(1_800_000_000, 0)
	src, err := New(Config{Node: "h100x1", Seed: 1, Now: func() time.Time { return now }, Hold: hold})
	if err != nil {
		t.Fatal(err)
	}
	r, err := src.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	devices, err := r.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(longEnough)
	for _, step := range []struct {
		after time.Duration
		zero  bool
	}{{0, true}, {hold - time.Second, true}, {time.Second, false}} {
		now = now.Add(step.after)
		codes := read(t, devices[0]).XID.Errors
		if len(codes) == 0 {
			t.Fatal("no XID so far")
		}
		if n := number(t, codes[0].Value); (n == 0) != step.zero {
			t.Errorf("%v after it was first read, the code is %v; is it to be 0: %v", step.after, n, step.zero)
		}
	}
}

// Only slices that others keep are made at each read: of XIDs, links and processes, and of partitions.
func TestReadAllocatesLittle(t *testing.T) {
	for node, most := range map[string]float64{"h100x1": 3, "h100migx1": 4} {
		c, devices := start(t, node, 1)
		c.moveTo(longEnough)
		out := new(telemetry.Device)
		since := longEnough
		if n := testing.AllocsPerRun(100, func() {
			since += time.Second
			c.moveTo(since)
			devices[0].Read(context.Background(), out)
		}); n > most {
			t.Errorf("%s: %v allocations a read; want %v at most", node, n, most)
		}
	}
}

// A board looked at every 15 s, as Prometheus does.
func BenchmarkRead(b *testing.B) {
	for _, node := range []string{"h100x1", "h100migx1"} {
		b.Run(node, func(b *testing.B) {
			c, devices := start(b, node, 1)
			since := longEnough
			b.ReportAllocs()
			for b.Loop() {
				since += 15 * time.Second
				c.moveTo(since)
				devices[0].Read(context.Background(), new(telemetry.Device))
			}
		})
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
