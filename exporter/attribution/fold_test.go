package attribution

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func unit(name string) Workload { return Workload{Type: telemetry.WorkloadTypeUnit, Unit: name} }

// storm lets a user have 250 units of new names at each snapshot.
func storm(r *rig, snapshots int) {
	for range snapshots {
		r.claims = r.claims[:0]
		for range 250 {
			r.units++
			r.claims = append(r.claims, Claim{Thing: Thing{Device: "GPU-0"}, Workload: unit(fmt.Sprintf("user/eve/a-unit-with-a-name-of-its-own-%07d.service", r.units)), Share: .004})
		}
		r.picture(time.Second)
	}
}

// A folded workload costs a few bytes from then on, however much is known of it.
func TestFold_CostsFewBytes(t *testing.T) {
	r := newRig(t, 1, Config{Limit: 1000})
	storm(r, 8) // the limit is reached, and what each snapshot needs is there
	r.claims = nil
	r.picture(time.Second)
	before, folded := heapInUse(), r.a.Counts().Folded
	storm(r, 80)
	r.claims = nil
	r.picture(time.Second)
	n := r.a.Counts().Folded - folded
	grown := heapInUse() - before
	if n != 20_000 {
		t.Fatalf("%d workloads were folded, want 20,000", n)
	}
	each := float64(grown) / float64(n)
	t.Logf("%.0f bytes each", each)
	if each > 200 {
		t.Errorf("each costs %.0f bytes, want at most 200", each)
	}
	runtime.KeepAlive(r)
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no heap is that large
}

// Of more folded workloads than are remembered those that ended first are forgotten, and nothing they took is.
func TestFolds_AreLimited(t *testing.T) {
	r := newRig(t, 1, Config{Limit: 100, Hold: -1})
	const most = 4000
	r.a.folds.most = most
	r.picture(0)
	storm(r, 40)
	r.claims = nil
	r.picture(time.Second)
	c := r.a.Counts()
	if c.Folded > most || c.Folded < most*3/4 || c.FoldedAll < 9000 {
		t.Errorf("%+v", c)
	}
	if got, want := r.sum(allocatedOf), 41.0; math.Abs(got-want) > 1e-6 {
		t.Errorf("%v s are allocated in all, want %v", got, want)
	}
	total := 0.
	for i := range r.last.Usages {
		total += number(r.last.Usages[i].Read.Accounting.AllocatedTime)
	}
	if want := r.sum(allocatedOf); math.Abs(total-want) > 1e-6 {
		t.Errorf("%v s are billed of %v", total, want)
	}
}

// A tenant with a storm of names folds its own workloads, newest first, and leaves those of others, who come
// earlier or later, theirs.
func TestLimit_StormFoldsItsOwn(t *testing.T) {
	for name, of := range map[string]func(i int) Workload{
		"a user's units": func(i int) Workload { return unit(fmt.Sprintf("user/eve/u%03d.service", i)) },
		"a namespace's": func(i int) Workload {
			return Workload{Type: telemetry.WorkloadTypeKubernetes, Namespace: "eve", Pod: fmt.Sprintf("%03d", i)}
		},
		"a user's jobs": func(i int) Workload {
			return Workload{Type: telemetry.WorkloadTypeSlurm, User: "eve", Job: fmt.Sprintf("%03d", i)}
		},
		"docker containers": func(i int) Workload { return unit(fmt.Sprintf("docker/%012d", i)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, Config{Limit: 4 + 20, Hold: -1}) // four are nobody's
			eves := func(n int) {
				for range n {
					r.units++
					r.claims = append(r.claims, Claim{Thing: Thing{Device: "GPU-0"}, Workload: of(r.units), Share: .01})
				}
			}
			r.picture(0)
			r.claim("early", 1, "", .01)
			r.picture(time.Second)
			eves(100)
			r.picture(time.Second)
			for i := range 8 {
				r.claim(fmt.Sprintf("late-%d", i), 1, "", .01)
				eves(10)
				r.picture(time.Second)
			}
			r.wants("allocated", allocatedOf, .09, `"early"`)
			for i := range 8 {
				if r.of(fmt.Sprintf(`"late-%d"`, i)) == nil {
					t.Errorf("late-%d is folded", i)
				}
			}
			for i, want := range map[int]bool{1: true, 11: true, 12: false, 19: false, 150: false} {
				w := of(i)
				if got := r.of(w.labels(Thing{Device: "GPU-0"}).Text()) != nil; got != want {
					t.Errorf("workload %d of the storm has a series: %v, want %v", i, got, want)
				}
			}
			if c := r.a.Counts(); c.Workloads != 24 || c.Folded != 180-11 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// Two tenants of one size share the limit, whoever came first.
func TestLimit_IsSharedEqually(t *testing.T) {
	r := newRig(t, 1, Config{Limit: 2 + 20, Hold: -1}) // two are nobody's
	r.picture(0)
	for _, who := range []string{"ada", "bob", "eve"} {
		for i := range 50 {
			r.claims = append(r.claims, Claim{Thing: Thing{Device: "GPU-0"}, Workload: unit(fmt.Sprintf("user/%s/%d.service", who, i)), Share: .001})
		}
		r.picture(time.Second)
	}
	has := map[string]int{}
	for i := range r.last.Workloads {
		w := Workload{Type: telemetry.WorkloadTypeUnit, Unit: r.last.Workloads[i].Labels.Get("process_unit")}
		has[w.tenant()]++
	}
	for _, who := range []string{"ada", "bob", "eve"} {
		if n := has["user/"+who]; n < 6 || n > 7 {
			t.Errorf("%s has %d series of 20, want a third", who, n)
		}
	}
}
