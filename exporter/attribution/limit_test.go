package attribution

import (
	"fmt"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// overflows are all that is told of folded workloads.
func overflows(r *rig) float64 { return r.sum(allocatedOf, `type="overflow"`) }

// Processes are folded before other workloads, the newest first; who is folded stays so, and what was
// told of it before is not told again.
func TestProcessesAreFoldedFirst(t *testing.T) {
	r := newRig(t, 2, Config{Hold: -1, Limit: 4 + 3}) // four are nobody's
	process := func(unit string) Workload { return Workload{Type: telemetry.WorkloadTypeProcess, Unit: unit} }
	for i := range int64(3) {
		r.whose[i] = process(fmt.Sprint("p", i))
		r.gpus[1].procs[i] = &rigProc{memory: 10}
	}
	r.gpus[1].memory = 30
	r.picture(0)
	r.picture(9 * time.Second)
	r.wants("allocated", allocatedOf, 3, `"p2"`)
	r.claim("web", 0, "", 1)
	r.picture(9 * time.Second)
	if r.of(`"web"`) == nil {
		t.Error("the pod is folded, though there are processes")
	}
	folded := ""
	for i := range 3 {
		if name := fmt.Sprintf(`"p%d"`, i); r.of(name) == nil {
			folded += name
		}
	}
	r.picture(9 * time.Second)
	if c := r.a.Counts(); c.Folded != 1 || c.FoldedAll != 1 || c.Workloads != 7 || len(folded) != len(`"p0"`) {
		t.Errorf("%s is folded, %+v", folded, c)
	}
	if got := overflows(r); got != 6 {
		t.Errorf("%v s of it are told since it was folded, want 6", got)
	}
	r.wants("memory", memoryOf, 10, "overflow")

	r.claims = nil // there is room again, and it is not taken
	for range 70 {
		r.picture(10 * time.Second)
	}
	if r.of(folded) != nil || r.of(`"web"`) != nil {
		t.Error("one that was folded is told again")
	}
	clear(r.gpus[1].procs) // it ends
	for range 70 {
		r.picture(10 * time.Second)
	}
	if c := r.a.Counts(); c.Folded != 0 || c.FoldedAll != 1 || c.Workloads != 4 {
		t.Errorf("after the end of all: %+v", c)
	}
	r.claim("next", 0, "", 1)
	r.picture(time.Second)
	if r.of(`"next"`) == nil {
		t.Error("there is room, and none is given")
	}
}

// What a process took that is folded within its hold was told as 0 under its name, and is told with the others.
func TestWhatWasNotToldIsFoldedToo(t *testing.T) {
	r := newRig(t, 2, Config{Limit: 4 + 1}) // four are nobody's
	r.whose[1] = Workload{Type: telemetry.WorkloadTypeProcess, Unit: "python3"}
	r.gpus[1].procs[1] = &rigProc{memory: 10}
	work := func(n int) {
		for range n {
			r.gpus[1].busy, r.gpus[1].joules = r.gpus[1].busy+4, r.gpus[1].joules+300
			r.picture(10 * time.Second)
		}
	}
	r.picture(0)
	work(2)
	r.wants("allocated, in the hold", allocatedOf, 0, "python3")
	r.claim("web", 0, "", 1)
	work(6)
	if r.of("python3") != nil || r.of(`"web"`) == nil {
		t.Fatal("the pod is folded, not the process")
	}
	for what, c := range map[string]struct {
		get  func(*telemetry.Workload) metric.Value
		want float64
	}{"allocated": {allocatedOf, 80}, "busy": {busyOf, 32}, "energy": {energyOf, 2400}} {
		if got := r.sum(c.get, "GPU-1"); got != c.want {
			t.Errorf("%s: %v of the device are told, want %v", what, got, c.want)
		}
	}
}

// The ledger bills those that are folded under their own names.
func TestTheFoldedAreBilled(t *testing.T) {
	r := newRig(t, 1, Config{Hold: -1, Limit: 4})
	for i := range 8 {
		r.claim(fmt.Sprint("p-", i), 0, "", 1./8)
		r.claims[i].Namespace = fmt.Sprint("team-", i%2)
	}
	r.picture(0)
	r.picture(8 * time.Second)
	if got := overflows(r); got != 4 {
		t.Errorf("%v s are told of the folded, want 4", got)
	}
	for i := range r.last.Usages {
		u := &r.last.Usages[i]
		want := map[string]float64{"team-0": 4, "team-1": 4, "": 0}[u.Labels.Get("k8s_namespace_name")]
		if got := number(u.Read.Accounting.AllocatedTime); got != want {
			t.Errorf("%s: %v s billed, want %v", u.Labels.Text(), got, want)
		}
	}
	if len(r.last.Usages) != 4 {
		t.Errorf("%d lines", len(r.last.Usages))
	}
}

// Beyond the limit the ledger has a line for the rest of each namespace, and beyond twice the limit
// one for all; nothing is lost.
func TestTheLedgerIsLimited(t *testing.T) {
	r := newRig(t, 1, Config{Hold: -1, Limit: 6})
	r.picture(0)
	for i := range 40 {
		r.claims = nil
		r.claim("one", 0, "", 1)
		c := &r.claims[0]
		c.Pod, c.Kind, c.Workload.Name = fmt.Sprint("job-", i), "Job", fmt.Sprint("job-", i)
		c.Namespace = fmt.Sprint("team-", i/2)
		r.picture(10 * time.Second)
		r.picture(10 * time.Second)
	}
	total, folded := 0., 0
	for i := range r.last.Usages {
		total += number(r.last.Usages[i].Read.Accounting.AllocatedTime)
		if r.last.Usages[i].Labels.Get("gpu_workload_type") == "overflow" {
			folded++
		}
	}
	c := r.a.Counts()
	if want := 800.; total != want || len(r.last.Usages) > 2*6+1 || c.Lines != len(r.last.Usages) || folded < 2 {
		t.Errorf("%v s in %d lines, %d of them of several, want %v s; %+v", total, len(r.last.Usages), folded, want, c)
	}
	if c.Billed != 40-4 {
		t.Errorf("%d workloads have no line of their own, want 36", c.Billed)
	}
}

// A line of the ledger that nobody is billed to goes after a day, not before.
func TestALineGoesAfterADay(t *testing.T) {
	r := newRig(t, 1, Config{})
	r.claim("a", 0, "", 1)
	r.picture(0)
	for range 12 {
		r.picture(10 * time.Second)
	}
	r.claims = nil
	line := func() bool {
		for i := range r.last.Usages {
			if r.last.Usages[i].Labels.Get("k8s_namespace_name") == "team" {
				return true
			}
		}
		return false
	}
	for range 24*6 - 1 {
		r.picture(10 * time.Minute)
	}
	if !line() {
		t.Error("it is gone before a day is over")
	}
	for range 3 {
		r.picture(10 * time.Minute)
	}
	if line() {
		t.Error("it is there after a day")
	}
}

// Remainders below zero are set to 0 and counted.
func TestClamps(t *testing.T) {
	r := newRig(t, 1, Config{Hold: -1})
	r.picture(0)
	for metric, n := range r.a.Counts().Clamps {
		if n != 0 {
			t.Errorf("%d clamps of %s from the start", n, metric)
		}
	}
	r.claim("a", 0, "", 1)
	r.whose[1] = pod("a")
	g := r.gpus[0]
	g.memory, g.procs[1] = 10, &rigProc{memory: 20}
	r.picture(time.Second)
	r.wants("memory", memoryOf, 0, "unattributed")
	if n := r.a.Counts().Clamps["gpu.workload.memory.usage"]; n != 1 {
		t.Errorf("%d clamps of memory", n)
	}
	g.procs, r.claims = nil, nil
	g.parts = []*rigPart{{uuid: "MIG-a", slices: 6}, {uuid: "MIG-b", slices: 3}} // of seven
	r.claim("b", 0, "MIG-b", 1)
	r.picture(time.Second)
	r.picture(9 * time.Second)
	r.wants("allocated", allocatedOf, 3, `"b"`)
	if n := r.a.Counts().Clamps["gpu.workload.allocated.time"]; n != 2 {
		t.Errorf("%d clamps of allocated time", n)
	}
}

// Processes are sampled more seldom than their device: what one look tells too much is theirs later,
// and only what is impossible is clamped.
func TestProcessesAreSampledSeldom(t *testing.T) {
	r := newRig(t, 1, Config{Hold: -1})
	r.picture(0)
	g := r.gpus[0]
	for i := range int64(2) {
		name := fmt.Sprint("p-", i)
		r.claim(name, 0, "", 0.5)
		r.whose[i], g.procs[i] = pod(name), &rigProc{sampled: true}
	}
	r.picture(0)
	for second := range 100 {
		g.busy, g.load = g.busy+0.8, 0.8
		if second%5 == 4 {
			g.procs[0].busy += 5 * 0.6
			g.procs[1].busy += 5 * 0.2
		}
		r.picture(time.Second)
	}
	for name, want := range map[string]float64{`"p-0"`: 60, `"p-1"`: 20} { // but for a look at most
		if got := number(r.of(name).Accounting.BusyTime); got < want-3.2 || got > want {
			t.Errorf("%s worked %v s, want %v", name, got, want)
		}
	}
	if n := r.a.Counts().Clamps["gpu.workload.busy.time"]; n != 0 {
		t.Errorf("%d clamps", n)
	}
	for range 10 {
		g.procs[0].busy += 10
		r.picture(time.Second)
	}
	if n := r.a.Counts().Clamps["gpu.workload.busy.time"]; n == 0 {
		t.Error("a process works ten seconds in each second, and that is not told")
	}
}
