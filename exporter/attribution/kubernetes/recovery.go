package kubernetes

import "time"

const (
	// recovering is how long a kubelet that has started again may take to list all pods, once it has
	// listed one.
	recovering = 30 * time.Second
	// blank is how long it may list none at all. Until the API server has told it of its pods it knows
	// none, and says so as if there were none: also for as long as the API server is away.
	blank = 10 * time.Minute
)

// recovery keeps what pods held when the kubelet started again, until that lists them again: their
// containers went on running.
type recovery struct {
	since  time.Time
	before []Holding // what it has not listed since
}

// begin takes what was held for what there is to be listed again.
func (r *recovery) begin(held []Holding, now time.Time) { r.since, r.before = now, held }

// restore adds to a list of so many pods what it will yet have.
func (r *recovery) restore(list []Holding, pods int, now time.Time) []Holding {
	if len(r.before) == 0 {
		return list
	}
	type thing struct{ resource, id, pool, share string }
	type holder struct {
		thing
		namespace, pod, container string
	}
	name := func(h *Holding) holder {
		return holder{thing{h.Resource, h.ID, h.Claim.Pool, h.Claim.Share}, h.Namespace, h.Pod, h.Container}
	}
	again := make(map[holder]bool, len(list))
	given := make(map[thing]*Holding, len(list)) // anew
	for i := range list {
		h := name(&list[i])
		again[h], given[h.thing] = true, &list[i]
	}
	var missing []Holding
	for i := range r.before {
		h := &r.before[i]
		// An id is one container's. A DRA device is one claim's, which several pods may have.
		other := given[name(h).thing]
		if !again[name(h)] && (other == nil || h.Claim != Claim{} && other.Claim == h.Claim) {
			missing = append(missing, *h)
		}
	}
	r.before = missing
	if age := now.Sub(r.since); age >= blank || pods > 0 && age >= recovering {
		r.before = nil
	}
	return append(list, r.before...)
}
