package attribution

import (
	"math"
	"testing"
	"time"
)

// What a process is measured to do on a device that another holds alone is nobody's: neither the
// holder's, which did not do it, nor the process' own, which holds nothing.
func TestStrayWorkIsNobodys(t *testing.T) {
	const stray, own = 1, 2
	begin := func(t *testing.T, procs ...int64) (*rig, *rigGPU) {
		r := newRig(t, 1, Config{Hold: time.Nanosecond})
		r.whose[own] = pod("a")
		for _, pid := range procs {
			r.gpus[0].procs[pid] = &rigProc{sampled: true}
		}
		return r, r.gpus[0]
	}
	work := func(g *rigGPU, pid int64, seconds float64) {
		g.busy, g.joules, g.watts, g.load = g.busy+seconds, g.joules+400*seconds, 500, 1
		if p := g.procs[pid]; p != nil {
			p.busy += seconds
		}
	}

	t.Run("the holder does nothing", func(t *testing.T) {
		r, g := begin(t, stray)
		r.claim("a", 0, "", 1)
		r.picture(0)
		r.picture(time.Second)
		g.joules += 1000 // at rest
		work(g, stray, 10)
		r.picture(10 * time.Second)
		r.wants("busy", busyOf, 0, `"a"`)
		r.wants("busy", busyOf, 10, "unattributed")
		r.wants("energy", energyOf, 1000, `"a"`)
		r.wants("energy", energyOf, 4000, "unattributed")
	})
	t.Run("the driver charges MPS' server with it", func(t *testing.T) {
		r, g := begin(t, stray)
		r.proxies = []int64{stray}
		r.claim("a", 0, "", 1)
		r.picture(0)
		r.picture(time.Second)
		work(g, stray, 10)
		r.picture(10 * time.Second)
		r.wants("busy", busyOf, 10, `"a"`)
		r.wants("busy", busyOf, 0, "unattributed")
	})
	t.Run("before anybody was given the device", func(t *testing.T) {
		r, g := begin(t, stray)
		r.picture(0)
		work(g, stray, 10)
		r.claim("a", 0, "", 1)
		r.picture(10 * time.Second)
		r.picture(time.Second)
		r.wants("busy", busyOf, 0, `"a"`)
		r.wants("busy", busyOf, 10, "unattributed")
		r.wants("energy", energyOf, 0, `"a"`)
		r.wants("energy", energyOf, 4000, "unattributed")
	})
	t.Run("of another unit", func(t *testing.T) {
		r, g := begin(t, stray)
		r.whose[stray] = pod("monitor")
		r.claim("a", 0, "", 1)
		r.picture(0)
		work(g, stray, 10)
		r.picture(10 * time.Second)
		r.wants("busy", busyOf, 0, `"a"`)
		r.wants("busy", busyOf, 10, "unattributed")
		if r.of(`"monitor"`) != nil {
			t.Error("the process' pod owns something")
		}
	})
	t.Run("the holder is not measured", func(t *testing.T) {
		r, g := begin(t, stray)
		r.claim("a", 0, "", 1)
		r.picture(0)
		work(g, stray, 2)
		work(g, own, 8)
		r.picture(10 * time.Second)
		r.wants("busy", busyOf, 8, `"a"`)
		r.wants("busy", busyOf, 2, "unattributed")
	})
	t.Run("the holder is measured too", func(t *testing.T) {
		r, g := begin(t, stray, own)
		r.claim("a", 0, "", 1)
		r.picture(0)
		work(g, stray, 2)
		work(g, own, 5)
		work(g, 0, 1) // by whom no sample tells
		r.picture(10 * time.Second)
		r.wants("busy", busyOf, 6, `"a"`)
		r.wants("busy", busyOf, 2, "unattributed")
	})
	t.Run("samples are late", func(t *testing.T) { // all but what was told before the first of them
		r, g := begin(t, stray, own)
		r.claim("a", 0, "", 1)
		r.picture(0)
		for second := range 100 {
			work(g, 0, 1)
			if second%5 == 4 {
				g.procs[stray].busy += 4
				g.procs[own].busy++
			}
			r.picture(time.Second)
		}
		a, nobody := number(r.of(`"a"`).Accounting.BusyTime), number(r.of("unattributed").Accounting.BusyTime)
		if a < 20 || a > 20+4 || math.Abs(a+nobody-100) > 1e-9 {
			t.Errorf("the holder worked %v s and nobody %v s, want about 20 and 80", a, nobody)
		}
		if n := r.a.Counts().Clamps["gpu.workload.busy.time"]; n != 0 {
			t.Errorf("%d clamps", n)
		}
	})
}
