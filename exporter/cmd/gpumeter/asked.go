package main

import (
	"maps"
	"slices"

	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
	"github.com/gpumeter/gpumeter/exporter/attribution/process"
	"github.com/gpumeter/gpumeter/exporter/attribution/slurm"
	"github.com/gpumeter/gpumeter/exporter/doctor"
	"github.com/gpumeter/gpumeter/exporter/self"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// asked tells how finding out whose work it is went.
func (n *node) asked(s *snapshot.Snapshot) self.Attribution {
	counts := n.attributor.Counts()
	out := self.Attribution{Unplaced: n.attributor.Unplaced(), Clamps: counts.Clamps, Folded: counts.Folded, Missed: counts.Missed}
	for _, tell := range n.who.tell {
		tell(s, &out)
	}
	return out
}

// tellOfPods tells how the kubelet and the API server answered. What virtual machines have is where it should be.
func tellOfPods(pods *kubernetes.Client, s *snapshot.Snapshot, sys string, out *self.Attribution) {
	counts, sources, held := pods.Counts(), pods.Sources(), pods.Holdings()
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		h := sources[name]
		if h.Reason == kubernetes.Waiting || h.Reason == kubernetes.Unset {
			continue // nobody asks
		}
		out.Witnesses = append(out.Witnesses, self.Witness{
			Name: string(name), Up: h.Reason == "", Read: h.Read, Requests: counts.Asked[name], Faults: faults(counts.Failures[name]),
		})
	}
	_, known, _ := pods.Pods()
	lost := slices.DeleteFunc(strays(pods, s.Devices, sys), func(s doctor.Stray) bool { return s.Driver != "" })
	out.Cluster = &self.Cluster{
		Pods: known, Holdings: len(held.All()), Strays: len(lost), Unseen: counts.Unseen, Connections: counts.Connections,
		Rejected: counts.Rejected,
	}
}

// tellOfJobs tells how reading the prolog's files went.
func tellOfJobs(mapping *slurm.Directory, out *self.Attribution) {
	state := mapping.State()
	w := self.Witness{Name: "slurm", Up: !state.Looked.IsZero() && state.Err == "", Read: state.Looked, Requests: state.Looks}
	w.Faults = faults(mapping.Counts())
	out.Witnesses = append(out.Witnesses, w)
}

// tellOfProcesses tells why processes could not be looked up. That one has ended is no fault.
func tellOfProcesses(processes *process.Locator, out *self.Attribution) {
	counts := processes.Counts()
	delete(counts, "gone")
	out.Witnesses = append(out.Witnesses, self.Witness{Name: "proc", Faults: faults(counts)})
}

// faults are those that there were.
func faults[R ~string](counts map[R]uint64) (out []self.Fault) {
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		if counts[reason] > 0 {
			out = append(out, self.Fault{Reason: string(reason), Count: counts[reason]})
		}
	}
	return out
}
