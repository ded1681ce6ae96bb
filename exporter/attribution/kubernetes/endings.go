package kubernetes

import "time"

const (
	// settled is how long a pod that holds devices may be unknown before it is taken for one that has
	// ended: longer than the kubelet is ahead of whoever tells of pods.
	settled = 10 * time.Second
	// fresh is how lately the pods of the node must have been known to be all there are. An API server
	// tells a watch of its progress every minute.
	fresh = 2 * time.Minute
)

// endings finds the pods that have ended among those the kubelet says hold devices: before 1.34 it
// lists those too, until they are deleted, while others use the devices.
type endings struct {
	pods    *table
	now     func() time.Time
	counts  *counts
	unknown map[holder]time.Time // since when one that holds devices is
	out     map[holder]bool      // those left out of the last list
	trusted bool                 // a pod that holds devices was known: the table is of this node
}

// holder is a pod that is listed; where the checkpoint tells its UID, no other of its name is meant.
type holder struct{ namespace, name, uid string }

// leaveOut takes out what is held by pods that have ended, and says how many those are, and whether
// there are any that nobody has told of yet.
func (e *endings) leaveOut(list []Holding) (kept []Holding, left int, unheard bool) {
	now, all := e.now(), false
	if _, teller := e.pods.told(); teller != nil {
		health := teller.get()
		all = health.Reason == "" && now.Sub(health.Read) < fresh
	}
	since, out := map[holder]time.Time{}, map[holder]bool{}
	kept = list[:0]
	for _, h := range list {
		who := holder{h.Namespace, h.Pod, h.UID}
		state := e.pods.standing(h.Namespace, h.Pod, h.UID)
		if state == unknown {
			since[who] = now
			if earlier, ok := e.unknown[who]; ok {
				since[who] = earlier
			}
		}
		e.trusted = e.trusted || state != unknown
		// Metadata tell of an end by no longer telling of the pod. Who was left out stays out, also when
		// metadata can no longer be had.
		gone := state == unknown && (e.out[who] || all && e.trusted && now.Sub(since[who]) >= settled)
		if state == ended || gone {
			out[who] = true
			continue
		}
		unheard = unheard || state == unknown
		kept = append(kept, h)
	}
	for who := range out {
		if !e.out[who] {
			e.counts.ended.Add(1)
		}
	}
	e.unknown, e.out = since, out
	return kept, len(out), unheard
}
