package attribution

import (
	"testing"
	"time"
)

// A GPU that falls off the bus while its pod holds it: the pod goes on holding it, and what the GPU
// counted meanwhile is the pod's once it answers again. Nothing is counted twice.
func TestADeviceIsLostAndComesBack(t *testing.T) {
	r := newRig(t, 2, Config{Hold: -1})
	r.claim("a", 0, "", 1)
	r.claim("b", 1, "", 1)
	r.picture(0)
	g := r.gpus[0]
	g.busy, g.joules = 5, 1000
	r.picture(10 * time.Second)
	g.quiet = true
	for range 3 {
		g.busy, g.joules = g.busy+5, g.joules+1000
		r.picture(10 * time.Second)
	}
	r.wants("allocated, while it is lost", allocatedOf, 40, `"a"`)
	r.wants("busy, while it is lost", busyOf, 5, `"a"`)
	r.lacks("memory, while it is lost", memoryOf, `"a"`)
	if got := r.last.Owners[0]; got.Labels.Get("k8s_pod_name") != "a" {
		t.Errorf("while it is lost its owner is told as %s", got.Labels.Text())
	}
	g.quiet = false
	r.picture(10 * time.Second)
	r.wants("allocated", allocatedOf, 50, `"a"`)
	r.wants("busy", busyOf, 20, `"a"`)
	r.wants("energy", energyOf, 4000, `"a"`)
	r.wants("allocated of the other", allocatedOf, 50, `"b"`)
	r.wants("nobody's", busyOf, 0, "GPU-0", "unattributed")
}

// The pod ends while its GPU is lost: what the GPU counted since is not the next one's.
func TestAPodEndsWhileItsDeviceIsLost(t *testing.T) {
	r := newRig(t, 1, Config{Hold: -1})
	r.claim("a", 0, "", 1)
	r.picture(0)
	g := r.gpus[0]
	g.quiet = true
	r.picture(10 * time.Second)
	r.claims = nil
	r.picture(10 * time.Second)
	r.claim("b", 0, "", 1)
	r.picture(10 * time.Second)
	g.busy, g.joules, g.quiet = 8, 5000, false
	r.picture(10 * time.Second)
	r.wants("allocated", allocatedOf, 20, `"a"`)
	r.wants("allocated", allocatedOf, 10, `"b"`)
	r.wants("busy", busyOf, 0, `"a"`)
	r.wants("busy", busyOf, 0, `"b"`)
	r.wants("busy", busyOf, 8, "unattributed")
	r.wants("energy", energyOf, 5000, "unattributed")
	g.busy += 3
	r.picture(10 * time.Second)
	r.wants("busy, later", busyOf, 3, `"b"`)
}

// The parts of a GPU that is lost are held by who held them.
func TestPartsOfALostDevice(t *testing.T) {
	r := newRig(t, 1, Config{Hold: -1})
	g := r.gpus[0]
	g.parts = []*rigPart{{uuid: "MIG-a", slices: 3, measured: true}}
	r.claim("a", 0, "MIG-a", 1)
	r.picture(0)
	g.quiet = true
	r.picture(7 * time.Second)
	g.parts[0].worked = 6
	g.quiet = false
	r.picture(7 * time.Second)
	r.wants("allocated", allocatedOf, 14*3/7., `"a"`)
	r.wants("busy", busyOf, 6*3/7., `"a"`)
	if len(r.last.Owners) != 2 {
		t.Errorf("%d owners", len(r.last.Owners))
	}
}

// The driver is loaded anew, and its counts begin again. What they tell since then is nobody's: who
// worked between is not known. Nobody loses what it had, and nothing is negative.
func TestTheDriverIsLoadedAnew(t *testing.T) {
	r := newRig(t, 1, Config{Hold: -1})
	r.claim("a", 0, "", 1)
	g := r.gpus[0]
	g.busy, g.joules = 1000, 1e6
	r.picture(0)
	g.busy, g.joules = 1005, 1e6+1000
	r.picture(10 * time.Second)
	g.busy, g.joules = 2, 300
	r.picture(10 * time.Second)
	r.wants("busy", busyOf, 5, `"a"`)
	r.wants("energy", energyOf, 1000, `"a"`)
	r.wants("nobody's busy", busyOf, 2, "unattributed")
	r.wants("nobody's energy", energyOf, 300, "unattributed")
	g.busy, g.joules = 7, 1300
	r.picture(10 * time.Second)
	r.wants("busy, later", busyOf, 10, `"a"`)
	r.wants("energy, later", energyOf, 2000, `"a"`)
	r.wants("allocated", allocatedOf, 30, `"a"`)
}

// The machine's clock is set an hour back and forth. An interval whose length is not known is of nobody;
// all others count as ever, no hold is longer than it was, and what has ended goes in time.
func TestTheClockIsSet(t *testing.T) {
	r := newRig(t, 1, Config{})
	g := r.gpus[0]
	work := func(after time.Duration) {
		g.busy, g.joules = g.busy+5, g.joules+2000
		r.picture(after)
	}
	r.picture(0)
	r.claim("a", 0, "", 1)
	work(10 * time.Second)
	work(-time.Hour)
	for range 4 {
		work(10 * time.Second)
	}
	r.wants("allocated after 40 s", allocatedOf, 40, `"a"`)
	r.wants("busy after 40 s", busyOf, 25, `"a"`) // the pod came in the first interval
	r.wants("busy while the clock was set", busyOf, 5, "unattributed")
	work(time.Hour)
	work(10 * time.Second)
	r.wants("allocated", allocatedOf, 50, `"a"`)
	r.wants("busy", busyOf, 30, `"a"`)
	r.wants("nobody's", busyOf, 10, "unattributed")
	if missed := r.a.Counts().Missed; missed != 3600 {
		t.Errorf("%v s were missed, want those by which it was set forth", missed)
	}
	r.claims = nil
	work(10 * time.Second)
	for range 59 {
		work(10 * time.Second)
	}
	if r.of(`"a"`) == nil {
		t.Error("gone after ten minutes")
	}
	work(time.Second)
	if r.of(`"a"`) != nil {
		t.Error("not gone after more than ten minutes")
	}
}

// The clock is set forth within the hold: whoever has not seen the workload yet still sees it at 0.
func TestTheClockIsSetWithinTheHold(t *testing.T) {
	r := newRig(t, 1, Config{})
	r.claim("a", 0, "", 1)
	r.picture(0)
	r.picture(10 * time.Second)
	r.picture(time.Hour)
	r.wants("allocated", allocatedOf, 0, `"a"`)
	r.picture(20 * time.Second)
	r.wants("allocated", allocatedOf, 30, `"a"`)
}

// Nobody looks for a day: that is told, and what was counted in it is nobody's.
func TestNobodyLooked(t *testing.T) {
	r := newRig(t, 1, Config{Hold: -1})
	r.claim("a", 0, "", 1)
	r.picture(0)
	r.picture(10 * time.Second)
	g := r.gpus[0]
	g.busy, g.joules = 3600, 1e6
	r.picture(24 * time.Hour)
	if missed := r.a.Counts().Missed; missed != 24*3600 {
		t.Errorf("%v s missed", missed)
	}
	r.wants("allocated", allocatedOf, 10, `"a"`)
	r.wants("busy", busyOf, 0, `"a"`)
	r.wants("nobody's", busyOf, 3600, "unattributed")
	if r.of("unallocated") == nil || r.sum(allocatedOf) != 10 {
		t.Errorf("%v s allocated in all", r.sum(allocatedOf))
	}
	g.busy += 5
	r.picture(10 * time.Second)
	r.wants("busy, later", busyOf, 5, `"a"`)
}

// A pod that is given a device of its own is seen when that is found, without a scrape.
func TestChanged(t *testing.T) {
	r := newRig(t, 1, Config{})
	if r.a.Changed() {
		t.Error("changed before the first picture")
	}
	r.picture(0)
	r.claim("a", 0, "", 0.5)
	if !r.a.Changed() {
		t.Error("not changed with a new pod")
	}
	r.picture(time.Second)
	if r.a.Changed() {
		t.Error("changed after a picture")
	}
	r.claims[0].Kind, r.claims[0].Name = "Deployment", "a"
	if r.a.Changed() {
		t.Error("changed when more is learned of the pod")
	}
	r.claims[0].Share = 1
	if !r.a.Changed() {
		t.Error("not changed with its share")
	}
	r.claims = nil
	if !r.a.Changed() {
		t.Error("not changed at its end")
	}
}
