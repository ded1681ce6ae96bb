package attribution

import (
	"slices"
	"strings"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// sight is what was seen of a device's processes in the last picture.
type sight struct {
	identity *telemetry.Identity
	uses     []Use
	listed   bool // the driver tells of processes
}

func sightOf(d *snapshot.Device, uses []Use) sight {
	return sight{d.Identity, uses, d.Read.Processes != nil}
}

// Explanation says whose a device or partition is, how that was found, and who works on it.
type Explanation struct {
	Owner
	Index  int
	Vendor string
	Model  string
	Uses   []Use // the processes on it; How says of one that nobody can place why not
	Listed bool  // the driver tells of its processes
	// MemoryWhy and BusyWhy say why memory and busy time are not known by process; nil: they are, or there is none.
	MemoryWhy, BusyWhy *metric.Reason
}

// Explain explains the last picture. It is zero before the first.
func (a *Attributor) Explain() (taken time.Time, all []Explanation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.result.known {
		s := a.result.seen[o.Device]
		e := Explanation{Owner: o, Index: s.identity.Index, Vendor: s.identity.Vendor, Model: s.identity.Model, Listed: s.listed}
		e.Holders = slices.Clone(o.Holders)
		for _, u := range s.uses {
			if u.Thing != o.Thing {
				continue
			}
			e.Uses = append(e.Uses, u)
			if why := u.Memory.Why(); why != nil {
				e.MemoryWhy = why
			}
			if why := u.Busy.Why(); why != nil {
				e.BusyWhy = why
			}
		}
		all = append(all, e)
	}
	return a.last, all
}

// Unplaced counts the processes of the last picture that nobody could place, by why.
func (a *Attributor) Unplaced() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out map[string]int
	for _, s := range a.result.seen {
		for i := range s.uses {
			if u := &s.uses[i]; u.Workload == unattributed {
				if out == nil {
					out = map[string]int{}
				}
				out[u.How]++
			}
		}
	}
	return out
}

// String names the workload for people: pod ml/train-0 (pytorch) of Job llama, job 30214 of ada, or a unit.
func (w Workload) String() string {
	var words []string
	if w.Pod != "" {
		words = append(words, "pod "+w.Namespace+"/"+w.Pod)
		if w.Container != "" {
			words = append(words, "("+w.Container+")")
		}
		if w.Kind != "" && (w.Kind != "Pod" || w.Name != w.Pod) {
			words = append(words, "of "+w.Kind+" "+w.Name)
		}
	}
	if w.Job != "" {
		words = append(words, "job "+w.Job)
		if w.User != "" {
			words = append(words, "of "+w.User)
		}
	}
	if w.Unit != "" {
		words = append(words, w.Unit)
	}
	if len(words) == 0 {
		return w.Type.String()
	}
	return strings.Join(words, " ")
}
