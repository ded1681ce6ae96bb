package attribution

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// rig is a machine of several devices, which may be cut into parts and may not answer.
type rig struct {
	units int // that a storm has had
	*testing.T
	a      *Attributor
	now    time.Time
	gpus   []*rigGPU
	claims []Claim
	whose  map[int64]Workload

	proxies []int64 // processes that work for others
	last    *snapshot.Snapshot
}

type rigGPU struct {
	id     *telemetry.Identity
	busy   float64
	joules float64
	memory float64
	watts  float64 // drawn now
	load   float64
	ecc    *float64 // uncorrected errors; nil: they are not told
	quiet  bool     // it does not answer
	parts  []*rigPart
	procs  map[int64]*rigProc
}

type rigPart struct {
	uuid     string
	slices   float64
	worked   float64
	memory   float64
	measured bool // its engines are
}

type rigProc struct {
	part    string
	busy    float64
	memory  float64
	sampled bool // its time is
}

func newRig(t *testing.T, gpus int, cfg Config) *rig {
	r := &rig{T: t, now: time.Unix(1_800_000_000, 0), whose: map[int64]Workload{}}
	for i := range gpus {
		r.gpus = append(r.gpus, &rigGPU{
			id: &telemetry.Identity{UUID: fmt.Sprintf("GPU-%d", i), Index: i, Model: "H100", Vendor: "nvidia"}, watts: 100, procs: map[int64]*rigProc{},
		})
	}
	cfg.Claims = append(cfg.Claims, func([]DeviceRef) []Claim { return r.claims })
	cfg.Place = func(pid int64) (Workload, string, bool) {
		if slices.Contains(r.proxies, pid) {
			return Workload{}, Proxy, false
		}
		w, ok := r.whose[pid]
		return w, "test", ok
	}
	r.a = New(cfg)
	return r
}

// claim gives a pod a share of a device or of its part.
func (r *rig) claim(name string, gpu int, part string, share float64) {
	r.claims = append(r.claims, Claim{Thing: Thing{r.gpus[gpu].id.UUID, part}, Share: share, Workload: pod(name)})
}

// picture takes one after a time.
func (r *rig) picture(after time.Duration) *snapshot.Snapshot {
	r.now = r.now.Add(after)
	s := &snapshot.Snapshot{Taken: r.now}
	for _, g := range r.gpus {
		s.Devices = append(s.Devices, g.read())
	}
	r.a.Stage(s)
	r.last = s
	return s
}

func (g *rigGPU) read() snapshot.Device {
	d := snapshot.Device{Identity: g.id, Labels: g.id.Labels(), Owned: g.id.Labels()}
	d.Read.Presence.Up.SetBool(!g.quiet)
	if g.quiet {
		return d
	}
	d.Read.Power.Energy.Set(g.joules)
	d.Read.Power.Draw.Set(g.watts)
	d.Read.Memory.Usage.Set(g.memory)
	if g.ecc != nil {
		d.Read.ECC.Errors[telemetry.ECCErrorTypeUncorrected].Set(*g.ecc)
	}
	d.Read.Processes = []telemetry.Part[telemetry.Process]{}
	for pid, p := range g.procs {
		one := telemetry.Part[telemetry.Process]{Labels: telemetry.ProcessAttributes{PartitionUUID: p.part, ProcessPid: pid}.Labels()}
		one.Read.Processes.MemoryUsage.Set(p.memory)
		if p.sampled {
			one.Read.Processes.BusyTime.Set(p.busy)
		}
		d.Read.Processes = append(d.Read.Processes, one)
	}
	for _, p := range g.parts {
		one := telemetry.Part[telemetry.Partition]{Labels: telemetry.PartitionAttributes{PartitionUUID: p.uuid}.Labels()}
		one.Read.Partitions.Slices.Set(p.slices)
		one.Read.Partitions.MemoryUsage.Set(p.memory)
		if p.measured {
			one.Read.Profiling.GrEngineActiveTime.Set(p.worked)
			one.Read.Profiling.GrEngineActive.Set(g.load)
		}
		d.Read.Partitions = append(d.Read.Partitions, one)
	}
	if len(g.parts) == 0 {
		d.Read.Utilization.BusyTime.Set(g.busy)
		d.Read.Utilization.Utilization.Set(g.load)
	}
	return d
}

// pod finds the series of a workload, on a part or on the device, by its labels; nil when there is none.
func (r *rig) of(words ...string) *telemetry.Workload {
	r.Helper()
	var found *telemetry.Workload
	for i := range r.last.Workloads {
		if containsAll(r.last.Workloads[i].Labels.Text(), words) {
			if found != nil {
				r.Fatalf("%q is of several series", words)
			}
			found = &r.last.Workloads[i].Read
		}
	}
	return found
}

// method is how a workload's use was split, as its info tells.
func (r *rig) method(words ...string) string {
	for _, d := range r.last.Details {
		if containsAll(d.Labels.Text(), words) {
			return d.Read.Description.Info[0].Labels.Get("gpu_workload_method")
		}
	}
	return ""
}

// sum adds up one reading of all series whose labels have these words.
func (r *rig) sum(get func(*telemetry.Workload) metric.Value, words ...string) float64 {
	total := 0.
	for i := range r.last.Workloads {
		if x := &r.last.Workloads[i]; containsAll(x.Labels.Text(), words) {
			total += number(get(&x.Read))
		}
	}
	return total
}

func busyOf(w *telemetry.Workload) metric.Value      { return w.Accounting.BusyTime }
func energyOf(w *telemetry.Workload) metric.Value    { return w.Accounting.Energy }
func allocatedOf(w *telemetry.Workload) metric.Value { return w.Accounting.AllocatedTime }
func memoryOf(w *telemetry.Workload) metric.Value    { return w.Holding.MemoryUsage }

// wants compares a reading of a series.
func (r *rig) wants(what string, get func(*telemetry.Workload) metric.Value, number float64, words ...string) {
	r.Helper()
	w := r.of(words...)
	if w == nil {
		r.Errorf("%s: no series of %s", what, strings.Join(words, " "))
		return
	}
	if got, ok := get(w).Get(); !ok || math.Abs(got-number) > 1e-6 {
		r.Errorf("%s of %s: %v (%v), want %v", what, strings.Join(words, " "), got, get(w).Why(), number)
	}
}

// lacks says that a reading is absent.
func (r *rig) lacks(what string, get func(*telemetry.Workload) metric.Value, words ...string) {
	r.Helper()
	w := r.of(words...)
	if w == nil {
		r.Errorf("%s: no series of %s", what, strings.Join(words, " "))
		return
	}
	if got, ok := get(w).Get(); ok {
		r.Errorf("%s of %s is %v, want none", what, strings.Join(words, " "), got)
	}
}
