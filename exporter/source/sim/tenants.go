package sim

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// Tenant is a simulated pod, or job of Slurm's, and the board, or partition of one, that it holds.
type Tenant struct {
	Device, Partition         string // UUIDs
	Namespace, Pod, Container string
	Kind, Name                string // of what made the pod
	Job                       string // Slurm's number; there is no pod
	User, Account, Queue      string // of the job; the queue is what Slurm calls a partition
	PID                       int64  // of its program; 0 while it only loads its image
}

// Tenants are those of a simulated node, as of the last reading of each board.
type Tenants struct {
	mu sync.Mutex
	of map[string][]Tenant // by the board's UUID
}

// List returns them in the order of what they hold.
func (t *Tenants) List() []Tenant {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []Tenant
	for _, some := range t.of {
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b Tenant) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Partition, b.Partition))
	})
	return all
}

// Whose returns the tenant whose program has that number.
func (t *Tenants) Whose(pid int64) (Tenant, bool) {
	for _, one := range t.List() {
		if one.PID == pid {
			return one, true
		}
	}
	return Tenant{}, false
}

func (t *Tenants) set(device string, list []Tenant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string][]Tenant{}
	}
	t.of[device] = list
}

// tenants are who holds a board's parts now: a job holds what it works on from its beginning to its
// end, and between jobs nobody does.
func (d *device) tenants() []Tenant {
	var list []Tenant
	for i := range d.physics.duties {
		w := &d.physics.duties[i]
		if w.job == nil {
			continue
		}
		one := d.slot.tenant(w.plan, d.physics.cycle, w.next, i)
		one.Device = d.identity.UUID
		if len(d.partitions) > 0 {
			one.Partition = d.partitions[i].uuid
		}
		if d.processes[i].labels != nil && w.used(d.physics.tick) > 0 {
			one.PID = d.processes[i].pid
		}
		list = append(list, one)
	}
	return list
}

// tenant is the pod of a job's seat, or of one of the board's partitions. Those of a training are
// numbered, one after the other; those that serve belong to a deployment, and one of them has all
// boards of its job. Nodes of different seeds have no pod in common, and share deployments.
func (s slot) tenant(p *plan, cycle int64, job, part int) Tenant {
	if s.slurm && !p.serving {
		number := between(mix(s.seed, uint64(s.entry), uint64(s.job), uint64(part), 'j'), 10, 99)*1000 + cycle*20 + int64(job)
		return Tenant{Job: fmt.Sprint(number), User: "ada", Account: "research", Queue: "gpu"}
	}
	one := Tenant{Namespace: "team-research", Kind: "Job", Container: "trainer"}
	if p.serving {
		seat := s.seat
		if p.mates > 1 {
			seat = 0
		}
		hash := mix(s.seed, uint64(s.entry), uint64(s.job), uint64(cycle))
		one = Tenant{Namespace: "team-serving", Kind: "Deployment", Container: "server"}
		one.Name = fmt.Sprintf("chat-%c", 'a'+s.job%26)
		one.Pod = fmt.Sprintf("%s-%s-%s", one.Name, letters(hash, 9), letters(mix(hash, uint64(seat)), 5))
	} else {
		one.Name = fmt.Sprintf("llama-%c%s-%d", 'a'+s.job%26, s.suffix(), cycle*100+int64(job))
		one.Pod = fmt.Sprintf("%s-%d", one.Name, s.entry*jobSize+s.seat)
	}
	if len(s.board.parts) > 0 {
		one.Pod = fmt.Sprintf("%s-%d", one.Pod, part)
	}
	return one
}

// suffix tells jobs of one node from those of another.
func (s slot) suffix() string {
	if s.seed == 0 {
		return ""
	}
	return letters(mix(s.seed, 't'), 4)
}

// letters are some of those Kubernetes makes names of.
func letters(from uint64, n int) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	out := make([]byte, n)
	for i := range out {
		out[i] = alphabet[from%uint64(len(alphabet))]
		from /= uint64(len(alphabet))
	}
	return string(out)
}
