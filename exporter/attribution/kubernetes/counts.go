package kubernetes

import "sync/atomic"

// Source is where something was learned, or was tried to be.
type Source string

// The sources.
const (
	PodResources Source = "podresources" // the kubelet's pod resources: who holds which ids
	Checkpoint   Source = "checkpoint"   // the file in which the kubelet keeps what it gave away
	KubeletPods  Source = "pods"         // the kubelet's Pods API
	KubeletHTTPS Source = "kubelet"      // the kubelet's /pods
	APIServer    Source = "api"          // pods of this node, from the API server
	NodeFacts    Source = "node"         // this node, from the API server
	Slices       Source = "slices"       // ResourceSlices of this node, from the API server
)

// sources are all, for counting.
var sources = [...]Source{PodResources, Checkpoint, KubeletPods, KubeletHTTPS, APIServer, NodeFacts, Slices}

// Counts are since the start.
type Counts struct {
	Asked       map[Source]uint64            // questions put to each source that is in use; of a watch, its starts
	Failures    map[Source]map[Reason]uint64 // of which failed; a source in use has every reason, from the start
	Connections uint64                       // made to the pod resources socket; 1 as long as the kubelet runs
	Events      uint64                       // of pods that were watched
	Unseen      uint64                       // pods that were given devices and were gone before they could be seen, as far as the checkpoint tells
	Rejected    uint64                       // entries of no sense in what was read, each left out
	Ended       uint64                       // pods still listed as holding devices, left out because they have ended
}

// counts is what Counts is made of.
type counts struct {
	asked       [len(sources)]atomic.Uint64
	failures    [len(sources)][len(reasons)]atomic.Uint64
	connections atomic.Uint64
	events      atomic.Uint64
	unseen      atomic.Uint64
	rejected    atomic.Uint64
	ended       atomic.Uint64
}

// ask counts a question.
func (c *counts) ask(s Source) { c.asked[sourceAt(s)].Add(1) }

// fail counts a failure.
func (c *counts) fail(s Source, r Reason) {
	for i, known := range reasons {
		if known == r {
			c.failures[sourceAt(s)][i].Add(1)
		}
	}
}

func sourceAt(s Source) int {
	for i, known := range sources {
		if known == s {
			return i
		}
	}
	return 0
}

// read copies the counts of the sources in use.
func (c *counts) read(used []Source) Counts {
	out := Counts{
		Asked: map[Source]uint64{}, Failures: map[Source]map[Reason]uint64{},
		Connections: c.connections.Load(), Events: c.events.Load(), Unseen: c.unseen.Load(),
		Rejected: c.rejected.Load(), Ended: c.ended.Load(),
	}
	for _, s := range used {
		at := sourceAt(s)
		out.Asked[s], out.Failures[s] = c.asked[at].Load(), map[Reason]uint64{}
		for i, r := range reasons {
			if r != Waiting && r != Unset { // states, not failures
				out.Failures[s][r] = c.failures[at][i].Load()
			}
		}
	}
	return out
}
