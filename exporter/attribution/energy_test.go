package attribution

import (
	"testing"
	"time"
)

// Energy above what a device draws at rest is split by measured busy time; the rest, and all of it where
// busy time is not measured, is nobody's. The device draws 100 W at rest, and 500 W in the ten seconds
// that are looked at. How it was split stands on the info.
func TestEnergy(t *testing.T) {
	begin := func(t *testing.T) (*rig, *rigGPU) {
		r := newRig(t, 1, Config{Hold: time.Nanosecond})
		r.picture(0) // at rest
		return r, r.gpus[0]
	}
	work := func(r *rig) {
		g := r.gpus[0]
		r.picture(time.Second)
		g.busy, g.joules, g.watts, g.load = g.busy+8, g.joules+5000, 500, 0.8
		for _, p := range g.procs {
			p.busy += 2
		}
		for i, p := range g.parts {
			p.worked += float64(4 * (i + 1)) // 4 s and 8 s
		}
		r.picture(10 * time.Second)
	}
	told := func(r *rig, method string, words ...string) {
		r.Helper()
		if got := r.method(words...); got != method {
			r.Errorf("method of %v is %q, want %q", words, got, method)
		}
	}

	t.Run("sole owner", func(t *testing.T) { // all of it, at rest too: it held the device
		r, _ := begin(t)
		r.claim("a", 0, "", 1)
		work(r)
		r.wants("energy", energyOf, 5000, `"a"`)
		r.wants("busy", busyOf, 8, `"a"`)
		r.wants("energy", energyOf, 0, "unattributed")
		told(r, "sole_owner", `"a"`)
	})
	t.Run("shared, each measured", func(t *testing.T) {
		r, g := begin(t)
		r.claim("a", 0, "", 0.5)
		r.claim("b", 0, "", 0.5)
		r.whose[1], r.whose[2], r.whose[3] = pod("a"), pod("b"), pod("b")
		for pid := range r.whose {
			g.procs[pid] = &rigProc{sampled: true}
		}
		work(r)
		r.wants("energy", energyOf, 4000*2/8., `"a"`) // 4000 J are above rest
		r.wants("energy", energyOf, 4000*4/8., `"b"`)
		r.wants("energy", energyOf, 1000+4000*2/8., "unattributed")
		r.wants("busy", busyOf, 2, `"a"`)
		r.wants("busy", busyOf, 4, `"b"`)
		r.wants("busy", busyOf, 2, "unattributed")
		told(r, "process_time", `"a"`)
	})
	t.Run("shared, none measured", func(t *testing.T) {
		r, g := begin(t)
		r.claim("a", 0, "", 0.5)
		r.claim("b", 0, "", 0.5)
		r.whose[1] = pod("a")
		g.procs[1] = &rigProc{}
		work(r)
		r.lacks("energy", energyOf, `"a"`)
		r.lacks("busy", busyOf, `"b"`)
		r.wants("allocated", allocatedOf, 5, `"a"`)
		r.wants("energy", energyOf, 5000, "unattributed")
		r.wants("busy", busyOf, 8, "unattributed")
		told(r, "unattributed", `"a"`)
	})
	t.Run("shared, what it draws at rest is not known", func(t *testing.T) {
		r := newRig(t, 1, Config{Hold: time.Nanosecond})
		r.gpus[0].load = 0.5 // it works since before anybody looked
		r.claim("a", 0, "", 0.5)
		r.claim("b", 0, "", 0.5)
		r.whose[1] = pod("a")
		r.gpus[0].procs[1] = &rigProc{sampled: true}
		r.picture(0)
		work(r)
		r.lacks("energy", energyOf, `"a"`)
		r.wants("busy", busyOf, 2, `"a"`)
		r.wants("energy", energyOf, 5000, "unattributed")
	})
	t.Run("MIG, each part measured", func(t *testing.T) {
		r, g := begin(t)
		g.parts = []*rigPart{{uuid: "MIG-a", slices: 2, measured: true}, {uuid: "MIG-b", slices: 3, measured: true}}
		r.claim("a", 0, "MIG-a", 1)
		r.claim("b", 0, "MIG-b", 1)
		r.claim("c", 0, "MIG-b", 1)
		work(r)
		r.wants("energy", energyOf, 4000*8/32., `"a"`) // 4 s × 2 slices of those and 8 s × 3
		r.wants("busy", busyOf, 4*2/7., `"a"`)
		r.lacks("energy", energyOf, `"b"`)
		r.wants("energy", energyOf, 4000*24/32., "unattributed", "MIG-b")
		r.wants("energy", energyOf, 1000, "unattributed", `uuid="GPU-0",gpu_workload`)
		told(r, "partition_time", `"a"`)
		told(r, "unattributed", `"b"`)
	})
	t.Run("MIG, never at rest", func(t *testing.T) { // what is above rest is not known, and not 0
		r := newRig(t, 1, Config{Hold: time.Nanosecond})
		g := r.gpus[0]
		g.load = 0.5
		g.parts = []*rigPart{{uuid: "MIG-a", slices: 2, measured: true, worked: 1}}
		r.claim("a", 0, "MIG-a", 1)
		work(r)
		r.wants("busy", busyOf, 4*2/7., `"a"`)
		r.lacks("energy", energyOf, `"a"`)
		r.wants("energy", energyOf, 5000, "unattributed", `uuid="GPU-0",gpu_workload`)
	})
	t.Run("MIG, none measured", func(t *testing.T) {
		r, g := begin(t)
		g.parts = []*rigPart{{uuid: "MIG-a", slices: 2}, {uuid: "MIG-b", slices: 3}}
		r.claim("a", 0, "MIG-a", 1)
		work(r)
		r.lacks("energy", energyOf, `"a"`)
		r.lacks("busy", busyOf, `"a"`)
		r.wants("allocated", allocatedOf, 10*2/7., `"a"`)
		r.wants("energy", energyOf, 5000, "unattributed", `uuid="GPU-0",gpu_workload`)
		told(r, "allocation", `"a"`)
	})
	t.Run("MIG, between two looks at the parts", func(t *testing.T) { // the last look holds
		r, g := begin(t)
		g.parts = []*rigPart{{uuid: "MIG-a", slices: 2, measured: true}}
		r.claim("a", 0, "MIG-a", 1)
		work(r)
		g.joules += 500
		r.picture(time.Second)
		r.wants("energy", energyOf, 4000+400, `"a"`)
		r.wants("busy", busyOf, 4*2/7., `"a"`)
	})
}

// What a device draws at rest is learned at rest alone, also of one that is used in parts.
func TestAtRest(t *testing.T) {
	r := newRig(t, 1, Config{})
	g := r.gpus[0]
	rest := func() float64 { w := r.a.wards["GPU-0"].rest; return map[bool]float64{true: w.watts}[w.known] }
	g.load, g.watts = 0.5, 50
	r.picture(time.Second)
	if rest() != 0 {
		t.Errorf("%v W, learned under load", rest())
	}
	g.load, g.watts = 0, 120
	r.picture(time.Second)
	g.watts = 110
	r.picture(time.Second)
	g.watts = 115
	r.picture(time.Second)
	if rest() != 110 {
		t.Errorf("%v W, want the least", rest())
	}
	g.parts = []*rigPart{{uuid: "MIG-a", slices: 2}}
	g.watts = 90
	r.picture(time.Second)
	if rest() != 110 {
		t.Errorf("%v W, though it is not known whether the part rests", rest())
	}
	g.parts[0].measured, g.load = true, 0.1
	r.picture(time.Second)
	if rest() != 110 {
		t.Errorf("%v W, though a part works", rest())
	}
	g.load = 0
	r.picture(time.Second)
	if rest() != 90 {
		t.Errorf("%v W, though all parts rest", rest())
	}
}

// The method that is told is that of the last picture, also of a workload whose labels are frozen, and
// stays while the device does not answer.
func TestTheMethodFollows(t *testing.T) {
	r := newRig(t, 1, Config{Hold: -1})
	told := func(what, method string) {
		t.Helper()
		if got := r.method(`"a"`); got != method {
			t.Errorf("%s: %q, want %q", what, got, method)
		}
	}
	r.claim("a", 0, "", 0.5)
	r.picture(0)
	r.picture(time.Minute)
	told("alone", "sole_owner")
	r.claim("b", 0, "", 0.5)
	r.picture(time.Minute)
	told("with another", "unattributed")
	r.whose[1], r.gpus[0].procs[1] = pod("a"), &rigProc{sampled: true}
	r.picture(time.Minute)
	told("and processes are sampled", "process_time")
	r.gpus[0].quiet = true
	r.picture(time.Minute)
	told("while the device is silent", "process_time")
}
