package attribution

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// fate moves a rig at random, and keeps what its devices have told.
type fate struct {
	*rand.Rand
	*rig
	seconds      float64
	joules, busy []tally            // of each device
	worked       []map[string]tally // of each part
	pids         int64
}

// tally is what a count rose by since it was first told, as increase() has it.
type tally struct {
	before, sum float64
	told        bool
}

func (x *tally) tell(n float64) {
	if x.told {
		x.sum += n
		if n >= x.before {
			x.sum -= x.before
		}
	}
	x.before, x.told = n, true
}

func newFate(t *testing.T, seed uint64) *fate {
	f := &fate{Rand: rand.New(rand.NewPCG(seed, 5)), rig: newRig(t, 3, Config{Hold: -1, Keep: 1000 * time.Hour})}
	f.joules, f.busy = make([]tally, len(f.gpus)), make([]tally, len(f.gpus))
	for range f.gpus {
		f.worked = append(f.worked, map[string]tally{})
	}
	f.picture(0)
	f.tally()
	return f
}

// tally takes in what a picture tells.
func (f *fate) tally() {
	for i, g := range f.gpus {
		if g.quiet {
			continue
		}
		f.joules[i].tell(g.joules)
		if len(g.parts) == 0 {
			f.busy[i].tell(g.busy)
		}
		there := map[string]bool{}
		for _, p := range g.parts {
			there[p.uuid] = true
			if x := f.worked[i][p.uuid]; p.measured {
				x.tell(p.worked * p.slices / 7)
				f.worked[i][p.uuid] = x
			}
		}
		for uuid, x := range f.worked[i] {
			x.told = x.told && there[uuid]
			f.worked[i][uuid] = x
		}
	}
}

// cut gives a device parts, or makes it whole.
func (f *fate) cut(g *rigGPU) {
	g.parts, g.procs = nil, map[int64]*rigProc{}
	if f.IntN(2) == 0 {
		return
	}
	for left := 7.; left > 0 && f.IntN(5) > 0; {
		n := math.Min(left, float64(1+f.IntN(4)))
		left -= n
		g.parts = append(g.parts, &rigPart{uuid: fmt.Sprintf("MIG-%d", f.IntN(100_000)), slices: n, measured: f.IntN(4) > 0})
	}
}

// deal gives devices and parts to pods, and starts processes of some, and of others.
func (f *fate) deal() {
	f.claims, f.whose = nil, map[int64]Workload{}
	name := func() string { return fmt.Sprintf("p-%d", f.IntN(12)) }
	for i, g := range f.gpus {
		places := []string{""}
		for _, p := range g.parts {
			places = append(places, p.uuid)
		}
		g.procs = map[int64]*rigProc{}
		for _, part := range places {
			for range f.IntN(4) {
				who := name()
				if f.IntN(3) > 0 {
					f.claim(who, i, part, []float64{1, 0.5, 0.25}[f.IntN(3)])
				}
				if part == "" && len(g.parts) > 0 || f.IntN(3) == 0 {
					continue
				}
				f.pids++
				g.procs[f.pids] = &rigProc{part: part, sampled: f.IntN(3) > 0}
				if f.IntN(4) > 0 {
					f.whose[f.pids] = pod(who)
				}
			}
		}
	}
}

// live lets time pass.
func (f *fate) live() {
	dt := 1 + 20*f.Float64()
	for _, g := range f.gpus {
		load := float64(f.IntN(2)) * f.Float64()
		if f.IntN(25) == 0 { // the driver was loaded anew: its counts begin again
			g.joules, g.busy = 0, 0
		}
		g.load, g.watts = load, 100+500*load
		g.joules += dt * g.watts * f.Float64()
		g.busy += load * dt
		for _, p := range g.parts {
			p.worked += load * dt
		}
		for _, p := range g.procs {
			p.busy += f.Float64() * dt
		}
		g.quiet = f.IntN(8) == 0
	}
	f.memories()
	switch f.IntN(40) {
	case 0:
		f.picture(-time.Hour) // the clock is set
	case 1:
		f.picture(24 * time.Hour)
	default:
		f.seconds += dt
		f.picture(time.Duration(dt * float64(time.Second)))
	}
	f.tally()
}

// memories are such that a device has what its parts have, and more, and a part what its processes have.
func (f *fate) memories() {
	for _, g := range f.gpus {
		g.memory = float64(f.IntN(1000))
		for _, p := range g.parts {
			p.memory = float64(f.IntN(100))
			g.memory += p.memory
		}
		for _, p := range g.procs {
			p.memory = float64(f.IntN(100))
			g.memory += p.memory
			for _, part := range g.parts {
				if part.uuid == p.part {
					part.memory += p.memory
				}
			}
		}
	}
}

// check compares the sums.
func (f *fate) check(what string, got, want float64) {
	f.Helper()
	if math.Abs(got-want) > 1e-6*math.Max(1, want) {
		f.Errorf("%s: %v in all series, want %v", what, got, want)
	}
}

// Whatever comes and goes, pods, processes, parts, answers of the driver and its counts: what all
// series of a device tell together is what the device does.
func TestConservationWithParts(t *testing.T) {
	for seed := range uint64(30) {
		f := newFate(t, seed)
		for step := range 120 {
			if f.IntN(15) == 0 {
				f.cut(f.gpus[f.IntN(3)])
				f.deal()
			}
			if f.IntN(3) == 0 {
				f.deal()
			}
			f.live()
			for i, g := range f.gpus {
				uuid := fmt.Sprintf(`gpu_uuid="%s"`, g.id.UUID)
				f.check("allocated time of "+uuid, f.sum(allocatedOf, uuid), f.seconds)
				if g.quiet {
					continue
				}
				f.check("energy of "+uuid, f.sum(energyOf, uuid), f.joules[i].sum)
				f.check("memory of "+uuid, f.sum(memoryOf, uuid), g.memory)
				f.check("busy time of "+uuid, f.sum(busyOf, uuid+",gpu_workload"), f.busy[i].sum)
				for part, worked := range f.worked[i] {
					f.check("busy time of "+part, f.sum(busyOf, uuid, `"`+part+`"`), worked.sum)
				}
			}
			for i := range f.last.Workloads {
				f.above(&f.last.Workloads[i].Read, f.last.Workloads[i].Labels.Text())
			}
			if t.Failed() {
				t.Fatalf("with seed %d, at step %d", seed, step)
			}
		}
		billed := 0.
		for i := range f.last.Usages {
			billed += number(f.last.Usages[i].Read.Accounting.AllocatedTime)
		}
		f.check("billed", billed, 3*f.seconds)
	}
}

// above says that nothing is below zero.
func (f *fate) above(w *telemetry.Workload, labels string) {
	f.Helper()
	for _, family := range telemetry.WorkloadFamilies {
		for _, row := range family.Rows {
			if n, ok := row(w).Get(); ok && n < 0 {
				f.Errorf("%s{%s} is %v", family.Desc.Prom, labels, n)
			}
		}
	}
}
