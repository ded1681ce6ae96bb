package sim

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// clock is a wall clock that the test moves.
type clock struct{ t time.Time }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (c *clock) now() time.Time             { return c.t }
func (c *clock) moveTo(since time.Duration) { c.t = noon.Add(since) }

// start opens a node whose driver was loaded at noon.
func start(t testing.TB, node string, seed uint64) (*clock, []source.Device) {
	t.Helper()
	c := &clock{t: noon}
	s, err := New(Config{Node: node, Now: c.now, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return c, list(t, s)
}

func list(t testing.TB, s source.Source) []source.Device {
	t.Helper()
	r, err := s.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	devices, err := r.Devices(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return devices
}

func read(t testing.TB, d source.Device) *telemetry.Device {
	t.Helper()
	out := new(telemetry.Device)
	if why := d.Read(context.Background(), out); why != nil {
		t.Fatal(why)
	}
	return out
}

// number wants a reading to have one.
func number(t *testing.T, v metric.Value) float64 {
	t.Helper()
	n, ok := v.Get()
	if !ok {
		t.Fatalf("no number: %s", v.Why().Text)
	}
	return n
}

// series is one of a metric: of the board itself, or of one of its parts.
type series struct {
	desc    *metric.Desc
	of, own *metric.Labels // the part's and the metric's
}

func (s series) String() string {
	return s.desc.Name + "{" + strings.Trim(s.of.Text()+","+s.own.Text(), ",") + "}"
}

// everyNumber calls f with each number that was read of a board and its parts.
func everyNumber(x *telemetry.Device, f func(s series, n float64)) {
	numbers(telemetry.DeviceFamilies, nil, x, f)
	for i := range x.Partitions {
		numbers(telemetry.PartitionFamilies, x.Partitions[i].Labels, &x.Partitions[i].Read, f)
	}
	for i := range x.Links {
		numbers(telemetry.LinkFamilies, x.Links[i].Labels, &x.Links[i].Read, f)
	}
	for i := range x.Processes {
		numbers(telemetry.ProcessFamilies, x.Processes[i].Labels, &x.Processes[i].Read, f)
	}
}

func numbers[T any](families []telemetry.Family[T], of *metric.Labels, x *T, f func(s series, n float64)) {
	for _, family := range families {
		for i, row := range family.Rows {
			if n, ok := row(x).Get(); ok {
				f(series{family.Desc, of, family.Desc.Rows[i]}, n)
			}
		}
		if family.Keyed == nil {
			continue
		}
		for _, k := range *family.Keyed(x) {
			if n, ok := k.Value.Get(); ok {
				f(series{family.Desc, of, k.Labels}, n)
			}
		}
	}
}
