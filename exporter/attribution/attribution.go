// Package attribution says whose work is on each device, and counts what it takes of it.
package attribution

import (
	"cmp"
	"slices"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Workload is who works. Two are the same when all of it is the same: that is their labels.
type Workload struct {
	Type                          telemetry.WorkloadType
	Namespace, Pod, Container     string
	Kind, Name                    string // of what made the pod
	Job, User, Account, Partition string // Slurm's
	Unit                          string // systemd's, a container or a command outside both
}

// Detail is what is too long for every series of a workload.
type Detail struct {
	Chain, Image, JobName, QOS string
	Shown                      *metric.Labels // of its pod, as configured; under names that no other label has
	Awaited                    bool           // who tells of pods has not been asked yet: the workload's labels are worth waiting for
}

// Thing is a device, or one of its partitions.
type Thing struct {
	Device    string // UUID
	Partition string // UUID; empty for the whole device
}

// Claim is what a workload was given of a thing, whether it uses it or not.
type Claim struct {
	Thing
	Workload
	Detail
	Share float64 // of the thing: 1 for all of it, k/n for k of n replicas
	How   string  // how it was found, in a few words
}

// Use is what one process does on a thing.
type Use struct {
	Thing
	Workload
	PID    int64
	Memory metric.Value // bytes
	Busy   metric.Value // seconds so far
	How    string       // how its workload was found, or why it was not
}

// Proxy is why a process is not placed that works for others, which some drivers charge with their work:
// the server of MPS. Whose it is is not known, and it is taken from nobody.
const Proxy = "it works for its clients"

// Owner is who holds a thing. Allocation beats processes: a monitoring process on an allocated
// device owns nothing.
type Owner struct {
	Thing
	Sharing telemetry.Sharing
	Holders []Claim // by workload; one when the sharing is exclusive
}

// Sole is the workload that alone holds the thing, nil when nobody does or several do.
func (o *Owner) Sole() *Claim {
	if o.Sharing != telemetry.SharingExclusive {
		return nil
	}
	return &o.Holders[0]
}

// own decides who holds a thing, of which these are all claims. Ownership is per pod: the container
// is named when it is the only one that holds the thing.
func own(at Thing, claims []Claim, uses []Use) Owner {
	o := Owner{Thing: at, Sharing: telemetry.SharingNone, Holders: make([]Claim, 0, len(claims))}
	for i := range claims {
		o.hold(&claims[i])
	}
	o.house()
	o.employ(uses)
	if len(o.Holders) == 0 {
		for i := range uses {
			if u := &uses[i]; u.Thing == at && u.Workload.Type != telemetry.WorkloadTypeUnattributed {
				o.hold(&Claim{Thing: at, Workload: u.Workload, Share: 1, How: u.How})
			}
		}
		for i := range o.Holders { // nothing was allocated, so nobody's share is known
			o.Holders[i].Share = 1 / float64(len(o.Holders))
		}
	}
	o.judge()
	return o
}

// judge says how the thing is shared, and orders who holds it.
func (o *Owner) judge() {
	slices.SortFunc(o.Holders, func(a, b Claim) int { return compare(a.Workload, b.Workload) })
	switch {
	case len(o.Holders) == 1:
		o.Sharing = telemetry.SharingExclusive
	case len(o.Holders) > 1:
		o.Sharing = telemetry.SharingShared
	}
}

// hold adds one claim to the holders, those of one pod or job together.
func (o *Owner) hold(c *Claim) {
	for i := range o.Holders {
		h := &o.Holders[i]
		if !samePod(&h.Workload, &c.Workload) {
			continue
		}
		if h.Container != c.Container {
			h.Container, h.Image = "", ""
		}
		h.Share = min(h.Share+c.Share, 1)
		return
	}
	o.Holders = append(o.Holders, *c)
	o.Holders[len(o.Holders)-1].Share = min(max(c.Share, 0), 1)
}

// samePod says whether two are of one pod or job, whatever is known of it so far: of a job also in which
// pod it runs.
func samePod(a, b *Workload) bool {
	return a.Type == b.Type && a.Job == b.Job && a.Unit == b.Unit &&
		(a.Type == telemetry.WorkloadTypeSlurm || a.Pod == b.Pod && a.Namespace == b.Namespace)
}

// compare gives workloads one order.
func compare(a, b Workload) int {
	return cmp.Or(
		cmp.Compare(a.Type, b.Type), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod),
		cmp.Compare(a.Container, b.Container), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Job, b.Job), cmp.Compare(a.User, b.User), cmp.Compare(a.Account, b.Account),
		cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Unit, b.Unit),
	)
}

// The workloads that are nobody's.
var (
	unattributed = Workload{Type: telemetry.WorkloadTypeUnattributed}
	unallocated  = Workload{Type: telemetry.WorkloadTypeUnallocated}
	overflow     = Workload{Type: telemetry.WorkloadTypeOverflow}
)

// labels are those of a workload's series.
func (w Workload) labels(at Thing) *metric.Labels {
	return telemetry.WorkloadAttributes{
		UUID: at.Device, PartitionUUID: at.Partition, WorkloadType: w.Type,
		K8sNamespaceName: w.Namespace, K8sPodName: w.Pod, K8sContainerName: w.Container,
		K8sWorkloadKind: w.Kind, K8sWorkloadName: w.Name,
		SlurmJobID: w.Job, SlurmUser: w.User, SlurmAccount: w.Account, SlurmPartition: w.Partition,
		ProcessUnit: w.Unit,
	}.Labels()
}

// ownerLabels are those that an owner's info and the device's gauges carry.
func (w Workload) ownerLabels(at Thing) *metric.Labels {
	return telemetry.OwnerAttributes{
		UUID: at.Device, PartitionUUID: at.Partition,
		K8sNamespaceName: w.Namespace, K8sPodName: w.Pod, K8sContainerName: w.Container,
		K8sWorkloadKind: w.Kind, K8sWorkloadName: w.Name,
		SlurmJobID: w.Job, SlurmUser: w.User, SlurmAccount: w.Account, SlurmPartition: w.Partition,
		ProcessUnit: w.Unit,
	}.Labels()
}

// usage is who is billed: it outlives pods and jobs.
func (w Workload) usage(model string) telemetry.UsageAttributes {
	return telemetry.UsageAttributes{
		Model: model, WorkloadType: w.Type, K8sNamespaceName: w.Namespace,
		K8sWorkloadKind: w.Kind, K8sWorkloadName: w.Name, SlurmAccount: w.Account, SlurmUser: w.User,
	}
}

// longest is the longest time between two pictures that is accounted: beyond it the machine slept
// or nobody read, and nothing is known of the time between.
const longest = 10 * time.Minute
