package attribution

import (
	"fmt"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// kept is how much an attributor keeps of everything.
func kept(a *Attributor) map[string]int {
	out := map[string]int{
		"accounts": len(a.accounts), "order": len(a.order), "ledger": len(a.ledger), "lines": len(a.lines),
		"joined": len(a.joined), "wards": len(a.wards), "said": len(a.said), "owners": len(a.result.owners), "told": len(a.result.told), "known": len(a.result.known),
	}
	for _, w := range a.wards {
		out["stakes"] += len(w.stakes)
		out["parts"] += len(w.parts) + len(w.worked)
		out["uses"] += len(w.uses)
		out["busy"] += len(w.busy)
		for _, c := range w.credit {
			out["credit"] += len(c)
		}
	}
	return out
}

// Pods and processes come and go for three days, and each half hour the devices are cut anew: nothing
// that is kept grows.
func TestNothingGrows(t *testing.T) {
	r := newRig(t, 4, Config{Limit: 100})
	first := map[string]int{}
	pid := int64(0)
	const steps = 3 * 24 * 12
	for step := range steps {
		r.claims, r.whose = nil, map[int64]Workload{}
		for i, g := range r.gpus {
			g.procs = map[int64]*rigProc{}
			if step%6 == 0 {
				g.parts = nil
				for n := range (step/6 + i) % 4 {
					g.parts = append(g.parts, &rigPart{uuid: fmt.Sprintf("MIG-%d-%d-%d", step, i, n), slices: 2, measured: true})
				}
			}
			places := []string{""}
			for _, p := range g.parts {
				places = append(places, p.uuid)
			}
			for n, part := range places {
				r.claim(fmt.Sprintf("pod-%d-%d-%d", step/2, i, n), i, part, 0.5)
				r.claims[len(r.claims)-1].Kind, r.claims[len(r.claims)-1].Workload.Name = "Job", fmt.Sprint("job-", step)
				pid++
				r.whose[pid] = Workload{Type: telemetry.WorkloadTypeProcess, Unit: fmt.Sprint("command-", pid)}
				g.procs[pid] = &rigProc{part: part, sampled: true, busy: 1}
			}
		}
		r.picture(5 * time.Minute)
		for what, n := range kept(r.a) {
			if step < steps/3 {
				first[what] = max(first[what], n)
			} else if n > first[what]+first[what]/4 {
				t.Fatalf("%d %s at step %d, at most %d on the first day", n, what, step, first[what])
			}
		}
		if c := r.a.Counts(); len(r.last.Workloads) > 100+2*16*3 || // those of nobody and of type overflow beside, also of the parts before
			c.Lines > 2*100+1 {
			t.Fatalf("%d workloads, %d lines of the ledger", len(r.last.Workloads), c.Lines)
		}
	}
	t.Logf("at most %v", first)
}
