package attribution

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// namesakes has a few pods and jobs come and go on a rig, of which it is known at once, later or never
// what made them, and which come back as another's.
func namesakes(r *rand.Rand, x *rig) {
	x.claims = nil
	for gpu := range x.gpus {
		for _, part := range []string{"", "MIG-a"} {
			for n := range r.IntN(3) {
				c := Claim{Thing: Thing{x.gpus[gpu].id.UUID, part}, Share: 0.5, Workload: pod(fmt.Sprint("p-", n))}
				switch r.IntN(4) {
				case 0:
					c.Kind, c.Workload.Name = "Job", fmt.Sprint("made-", r.IntN(2))
				case 1:
					c.Container = fmt.Sprint("c-", r.IntN(2))
				case 2:
					c.Workload = Workload{Type: telemetry.WorkloadTypeSlurm, Job: fmt.Sprint(n), User: []string{"", "ada", "bob"}[r.IntN(3)]}
				}
				x.claims = append(x.claims, c)
			}
		}
	}
}

// Whoever comes and goes under whatever names, no two series of one page have the same labels: neither of
// workloads, nor of what is told of them, nor of owners, nor of the ledger.
func TestNoSeriesTwice(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		x := newRig(t, 2, Config{Limit: 6 + r.IntN(8), Hold: 20 * time.Second, Keep: 3 * time.Minute})
		for step := range 300 {
			if r.IntN(40) == 0 {
				g := x.gpus[r.IntN(2)]
				g.parts = [][]*rigPart{nil, {{uuid: "MIG-a", slices: 7}}}[r.IntN(2)]
			}
			if r.IntN(3) == 0 {
				namesakes(r, x)
			}
			x.picture(10 * time.Second)
			seen := map[string]bool{}
			once := func(what, labels string) {
				if seen[what+labels] {
					t.Fatalf("with seed %d, at step %d: %s{%s} is told twice", seed, step, what, labels)
				}
				seen[what+labels] = true
			}
			for _, s := range x.last.Workloads {
				once("gpu_workload", s.Labels.Text())
			}
			for _, s := range x.last.Details {
				once("gpu_workload_info", s.Labels.Text())
			}
			for _, s := range x.last.Owners {
				once("gpu_owner_info", s.Labels.Text())
			}
			for _, s := range x.last.Usages {
				once("gpu_usage", s.Labels.Text())
			}
		}
	}
}

// What is told of a workload beside its counts is told of the one that has the name now, so that a join on
// the labels that both have finds one.
func TestOneInfoForANamesake(t *testing.T) {
	r := newRig(t, 1, Config{})
	r.claim("web", 0, "", 1)
	r.learn("Deployment", "old")
	r.claims[0].Image = "old:1"
	r.picture(0)
	for range 4 {
		r.picture(10 * time.Second)
	}
	claims := r.claims
	r.claims = nil
	r.picture(10 * time.Second)
	r.picture(10 * time.Second)
	images := func(when, want string) {
		t.Helper()
		var got []string
		for _, d := range r.last.Details {
			got = append(got, d.Read.Description.Info[0].Labels.Get("container_image_name"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: images %q, want %q", when, got, want)
		}
	}
	images("when the first has ended", "old:1")
	r.claim("web", 0, "", 1)
	r.learn("Job", "new")
	r.claims[0].Image = "new:2"
	r.picture(10 * time.Second)
	images("when the next is there", "new:2")
	if r.of(`"old"`) == nil {
		t.Error("the counts of the first are gone")
	}
	r.claims = nil
	r.picture(10 * time.Second)
	r.picture(10 * time.Second)
	r.claims = claims
	r.picture(10 * time.Second)
	images("when the first is back", "old:1")
}

// The labels by which a device's gauges and gpu_owner_info name who holds it are those of its counts, also
// where it is learned after they froze what made it: joins on any of them find something.
func TestOwnersAreNamedAsTheirCounts(t *testing.T) {
	for name, c := range map[string]struct {
		learned time.Duration // after the first picture
		frozen  string        // the name of what made it, from the 30th second on
	}{
		"learned at once": {0, "train"}, "learned within the hold": {20 * time.Second, "train"}, "learned too late": {50 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 3, Config{})
			r.gpus[1].parts = []*rigPart{{uuid: "MIG-a", slices: 3}, {uuid: "MIG-b", slices: 3}}
			r.gpus[2].parts = []*rigPart{{uuid: "MIG-c", slices: 7}}
			r.claim("a", 0, "", 1)
			r.claim("a", 1, "", 1)
			r.claim("a", 2, "MIG-c", 1)
			for at := time.Duration(0); at <= 80*time.Second; at += 10 * time.Second {
				if at >= c.learned {
					r.learn("Job", "train")
				}
				r.picture(10 * time.Second)
				want := c.frozen
				if at < 30*time.Second {
					want = map[bool]string{true: "train"}[at >= c.learned]
				}
				check := func(what string, got string) {
					t.Helper()
					if got != want {
						t.Errorf("at %v: %s names %q, want %q", at, what, got, want)
					}
				}
				for i := range r.last.Devices {
					d := &r.last.Devices[i]
					check("a gauge of "+d.Identity.UUID, d.Owned.Get("k8s_workload_name"))
					for k := range d.Read.Partitions {
						check("a gauge of a part of "+d.Identity.UUID, d.Read.Partitions[k].Owned.Get("k8s_workload_name"))
					}
				}
				for _, o := range r.last.Owners {
					check("the owner of "+o.Labels.Text(), o.Labels.Get("k8s_workload_name"))
				}
				_, all := r.a.Explain()
				for _, e := range all { // which people read, who want to know what is known
					if got := e.Sole().Workload.Name; got != map[bool]string{true: "train"}[at >= c.learned] {
						t.Errorf("at %v: explained as of %q", at, got)
					}
				}
				for _, w := range r.last.Workloads {
					if w.Labels.Get("k8s_pod_name") == "a" {
						check("counts "+w.Labels.Text(), w.Labels.Get("k8s_workload_name"))
					}
				}
			}
		})
	}
}
