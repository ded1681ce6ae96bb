package attribution

import (
	"slices"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// tell writes owners and accounts into a picture.
func (a *Attributor) tell(s *snapshot.Snapshot) {
	for i := range s.Devices {
		a.tellDevice(&s.Devices[i])
	}
	s.Owners, s.Workloads = slices.Grow(s.Owners, len(a.result.told)), slices.Grow(s.Workloads, len(a.order))
	s.Details, s.Usages = slices.Grow(s.Details, len(a.order)), slices.Grow(s.Usages, len(a.lines))
	for _, o := range a.result.told {
		s.Owners = append(s.Owners, a.ownerSeries(&o))
	}
	for _, acc := range a.order {
		s.Workloads = append(s.Workloads, acc.tell(a.turn, a.clock, a.cfg.Hold))
		if acc.workload.Type < telemetry.WorkloadTypeUnattributed && !acc.retired { // its successor's info has the same labels
			s.Details = append(s.Details, acc.info)
		}
	}
	for _, line := range a.lines {
		s.Usages = append(s.Usages, line.tell(a.clock, a.cfg.Hold))
	}
	for k, j := range a.joined {
		if j.turn != a.turn {
			delete(a.joined, k)
		}
	}
}

// tellDevice puts the owner's labels on the gauges of a device, or of its partitions.
func (a *Attributor) tellDevice(d *snapshot.Device) {
	if a.cfg.Join { // then the model is to be joined too
		d.Owned = a.labels(joined{labels: d.Labels}, func() *metric.Labels { return withoutModel(d.Labels) })
		return
	}
	at := Thing{Device: d.Identity.UUID}
	if o, ok := a.result.owners[at]; ok {
		if sole := o.Sole(); sole != nil {
			d.Owned = a.join(d.Labels, &sole.Workload)
		}
	}
	if len(d.Read.Partitions) == 0 {
		return
	}
	d.Read.Partitions = slices.Clone(d.Read.Partitions) // the reader's own are not ours to write into
	for i := range d.Read.Partitions {
		p := &d.Read.Partitions[i]
		at.Partition = p.Labels.Get("gpu_partition_uuid")
		o, ok := a.result.owners[at]
		if sole := o.Sole(); ok && sole != nil {
			p.Owned = a.join(p.Labels, &sole.Workload)
		}
	}
}

// withoutModel returns the labels that gauges carry when the model is to be joined too.
func withoutModel(l *metric.Labels) *metric.Labels {
	return metric.NewLabels(slices.DeleteFunc(slices.Clone(l.Pairs()), func(l metric.Label) bool { return l.Name == "gpu_model" })...)
}

// joined is a set of labels and whose it is, or a thing and whose it is.
type joined struct {
	labels   *metric.Labels
	at       Thing
	workload Workload
}

// both are the labels of the two.
type both struct {
	*metric.Labels
	turn uint64 // of the picture that had them last
}

// join makes the labels of a thing and its owner once, and keeps them while they are used.
func (a *Attributor) join(l *metric.Labels, w *Workload) *metric.Labels {
	short := w.short()
	return a.labels(joined{labels: l, workload: short}, func() *metric.Labels {
		return metric.NewLabels(append(slices.Clone(l.Pairs()), short.ownerLabels(Thing{}).Pairs()...)...)
	})
}

// short is what of a workload stands on gauges: of a job in a pod not the container, nor what made the pod,
// which the owner's info has. With all of it a series of a partition would have more than 14 labels.
func (w Workload) short() Workload {
	if w.Job != "" {
		w.Container, w.Kind, w.Name = "", "", ""
	}
	return w
}

func (a *Attributor) labels(k joined, make func() *metric.Labels) *metric.Labels {
	j := a.joined[k]
	if j == nil {
		j = &both{Labels: make()}
		a.joined[k] = j
	}
	j.turn = a.turn
	return j.Labels
}

// ownerSeries is the one series that says who holds a thing.
func (a *Attributor) ownerSeries(o *Owner) telemetry.Part[telemetry.Owner] {
	w := Workload{}
	if sole := o.Sole(); sole != nil {
		w = sole.Workload
	}
	out := telemetry.Part[telemetry.Owner]{Labels: a.labels(joined{at: o.Thing, workload: w}, func() *metric.Labels { return w.ownerLabels(o.Thing) })}
	out.Read.Ownership.Info[o.Sharing].Set(1)
	return out
}
