package sim

import (
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// restAndWork reads a board before its first job, and when that works at full load.
func restAndWork(t *testing.T, c *clock, d source.Device) (rest, work *telemetry.Device) {
	t.Helper()
	j := d.(*device).physics.plan.jobs[0]
	c.moveTo(time.Duration(j.from-1) * time.Second)
	rest = read(t, d)
	c.moveTo(time.Duration(j.from+j.ramp+1) * time.Second)
	return rest, read(t, d)
}

// Boards with HBM stay in P0, as nvidia-smi showed of an idle H200; GeForce boards compute in P2.
func TestPerformanceState(t *testing.T) {
	for id, want := range map[string]struct{ rest, work float64 }{
		"h100": {0, 0}, "h200": {0, 0}, "b200": {0, 0}, "a100": {0, 0}, "l40s": {8, 0}, "rtx4090": {8, 2},
	} {
		c, devices := start(t, id+"x1", 1)
		rest, work := restAndWork(t, c, devices[0])
		if r, w := number(t, rest.Mode.PerformanceState), number(t, work.Mode.PerformanceState); r != want.rest || w != want.work {
			t.Errorf("%s: P%v at rest and P%v at work; want P%v and P%v", id, r, w, want.rest, want.work)
		}
	}
}

// The states that exclude each other hold one at a time.
func TestOneStateHolds(t *testing.T) {
	c, devices := start(t, "b200x1", 1)
	c.moveTo(time.Hour)
	x := read(t, devices[0])
	for name, states := range map[string][]metric.Value{
		"compute modes": x.Mode.ComputeMode[:], "fabric states": x.Fabric.State[:], "fabric healths": x.Fabric.Health[:],
	} {
		n := 0.0
		for _, v := range states {
			n += number(t, v)
		}
		if n != 1 {
			t.Errorf("%v %s hold at once", n, name)
		}
	}
}
