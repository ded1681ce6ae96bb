package attribution

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func pod(name string) Workload {
	return Workload{Type: telemetry.WorkloadTypeKubernetes, Namespace: "team", Pod: name}
}

// Whatever the holders, the shares and the processes, the parts add up to the interval, and none is
// below zero.
func TestPartsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "c", "d"}
	for range 20_000 {
		o := Owner{Thing: Thing{Device: "GPU-0"}}
		for _, n := range names[:r.IntN(5)] {
			o.hold(&Claim{Workload: pod(n), Share: max(r.Float64()*1.5-0.3, 0)})
		}
		switch len(o.Holders) {
		case 0:
		case 1:
			o.Sharing = telemetry.SharingExclusive
		default:
			o.Sharing = telemetry.SharingShared
		}
		in := interval{seconds: r.Float64() * 60, busy: count{0, r.IntN(4) > 0}, energy: count{0, r.IntN(4) > 0}}
		if in.busy.known {
			in.busy.n = r.Float64() * in.seconds
		}
		if in.energy.known {
			in.energy.n = r.Float64() * 700 * in.seconds
			in.active = count{r.Float64() * in.energy.n, in.energy.known}
		}
		var measured map[Workload]float64
		if r.IntN(2) > 0 {
			measured = map[Workload]float64{}
			for _, n := range append(names, "stray") {
				if r.IntN(2) > 0 {
					measured[pod(n)] = r.Float64() * in.seconds
				}
			}
		}
		weight := []float64{1, 1. / 7, 3. / 7}[r.IntN(3)]
		parts, method, _ := split(&o, in, weight, measured)
		busy, energy, allocated := 0., 0., 0.
		for _, p := range parts {
			busy += p.busy.n
			energy += p.energy.n
			allocated += p.allocated.n
			if p.busy.n < 0 || p.energy.n < 0 || p.allocated.n < 0 {
				t.Fatalf("a part below zero: %+v", p)
			}
			if p.busy.known && !in.busy.known || p.energy.known && !in.energy.known {
				t.Fatalf("known of a part, and not of the thing: %+v", p)
			}
		}
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-9*max(1, want) {
				t.Fatalf("%s: %v in parts, %v in all (%s, holders %d, measured %v)", what, got, want, method, len(o.Holders), measured)
			}
		}
		near("busy", busy, in.busy.n)
		near("energy", energy, in.energy.n)
		near("allocated", allocated, in.seconds*weight)
	}
}

func TestSplit(t *testing.T) {
	a, b := pod("a"), pod("b")
	shared := Owner{Sharing: telemetry.SharingShared, Holders: []Claim{{Workload: a, Share: 0.25}, {Workload: b, Share: 0.5}}}
	sole := Owner{Sharing: telemetry.SharingExclusive, Holders: []Claim{{Workload: a, Share: 1}}}
	came := Owner{Sharing: telemetry.SharingExclusive, Holders: []Claim{{Workload: a}}} // since the picture before
	in := interval{seconds: 10, busy: count{8, true}, energy: count{3000, true}, active: count{2000, true}}
	for name, c := range map[string]struct {
		owner    Owner
		measured map[Workload]float64
		method   string
		want     map[Workload][3]float64 // busy, energy, allocated
	}{
		"nobody": {Owner{}, nil, byNobody, map[Workload][3]float64{unattributed: {8, 3000, 0}, unallocated: {0, 0, 10}}},
		"one":    {sole, nil, bySoleOwner, map[Workload][3]float64{a: {8, 3000, 10}}},
		"one, and a stray process": {sole, map[Workload]float64{pod("monitor"): 1}, bySoleOwner,
			map[Workload][3]float64{a: {7, 2750, 10}, unattributed: {1, 250, 0}}},
		"one, of which less is measured than the device did": {sole, map[Workload]float64{a: 2, unattributed: 2}, bySoleOwner,
			map[Workload][3]float64{a: {6, 2500, 10}, unattributed: {2, 500, 0}}},
		"one that did nothing, and a stray process": {sole, map[Workload]float64{a: 0, unattributed: 8}, bySoleOwner,
			map[Workload][3]float64{a: {0, 1000, 10}, unattributed: {8, 2000, 0}}},
		"one, and a stray process that says more than the device": {sole, map[Workload]float64{a: 8, unattributed: 24}, bySoleOwner,
			map[Workload][3]float64{a: {2, 1500, 10}, unattributed: {6, 1500, 0}}},
		"one that came since": {came, map[Workload]float64{a: 2}, bySoleOwner,
			map[Workload][3]float64{a: {8, 2000, 0}, unattributed: {0, 1000, 0}, unallocated: {0, 0, 10}}},
		"one that came after a stray process": {came, map[Workload]float64{unattributed: 8}, bySoleOwner,
			map[Workload][3]float64{a: {0, 0, 0}, unattributed: {8, 3000, 0}, unallocated: {0, 0, 10}}},
		"a pod, and a job in it": {sole, map[Workload]float64{{Type: telemetry.WorkloadTypeSlurm, Namespace: "team", Pod: "a", Job: "1"}: 8}, bySoleOwner,
			map[Workload][3]float64{a: {8, 3000, 10}}},
		"two, measured": {shared, map[Workload]float64{a: 2, b: 4}, byProcesses,
			map[Workload][3]float64{a: {2, 500, 2.5}, b: {4, 1000, 5}, unattributed: {2, 1500, 0}, unallocated: {0, 0, 2.5}}},
		"two, of which one did nothing": {shared, map[Workload]float64{b: 8}, byProcesses,
			map[Workload][3]float64{a: {0, 0, 2.5}, b: {8, 2000, 5}, unattributed: {0, 1000, 0}, unallocated: {0, 0, 2.5}}},
		"two, that together say more than the device": {shared, map[Workload]float64{a: 8, b: 8}, byProcesses,
			map[Workload][3]float64{a: {4, 1000, 2.5}, b: {4, 1000, 5}, unattributed: {0, 1000, 0}, unallocated: {0, 0, 2.5}}},
		"two, that were given more than there is": {Owner{Sharing: telemetry.SharingShared, Holders: []Claim{{Workload: a, Share: 1}, {Workload: b, Share: 0.25}}},
			nil, byNobody, map[Workload][3]float64{a: {0, 0, 8}, b: {0, 0, 2}, unattributed: {8, 3000, 0}, unallocated: {0, 0, 0}}},
		"two, and nothing is measured": {shared, nil, byNobody,
			map[Workload][3]float64{a: {0, 0, 2.5}, b: {0, 0, 5}, unattributed: {8, 3000, 0}, unallocated: {0, 0, 2.5}}},
	} {
		parts, method, _ := split(&c.owner, in, 1, c.measured)
		if method != c.method {
			t.Errorf("%s: by %s, want %s", name, method, c.method)
		}
		for _, p := range parts {
			if got := [3]float64{p.busy.n, p.energy.n, p.allocated.n}; got != c.want[p.workload] {
				t.Errorf("%s: %s%s has %v, want %v", name, p.workload.Type, p.workload.Pod, got, c.want[p.workload])
			}
		}
	}
}
