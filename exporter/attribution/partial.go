package attribution

import (
	"slices"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Partial is the Partial of a snapshot.Stage: a scrape that cannot wait gets the owners and accounts of the
// last complete snapshot, and nothing is counted. They are not carried over from a snapshot older than the
// longest interval that is accounted: by then the owners are unknown.
func (a *Attributor) Partial(s, last *snapshot.Snapshot) {
	if a.cfg.Join {
		for i := range s.Devices {
			s.Devices[i].Owned = withoutModel(s.Devices[i].Labels)
		}
	}
	if last == nil || s.Taken.Sub(last.Taken) > longest {
		return
	}
	s.Owners, s.Workloads, s.Details, s.Usages = last.Owners, last.Workloads, last.Details, last.Usages
	for i := range s.Devices {
		d := &s.Devices[i]
		at := slices.IndexFunc(last.Devices, func(before snapshot.Device) bool { return before.Labels == d.Labels })
		if at < 0 { // new, or known by other labels since
			continue
		}
		before := &last.Devices[at]
		d.Owned = before.Owned
		d.Read.Partitions = slices.Clone(d.Read.Partitions) // the reader's own are not ours to write into
		for k := range d.Read.Partitions {
			d.Read.Partitions[k].Owned = ownedBefore(before.Read.Partitions, d.Read.Partitions[k].Labels)
		}
	}
}

// ownedBefore returns the labels with owner that a partition had.
func ownedBefore(partitions []telemetry.Part[telemetry.Partition], l *metric.Labels) *metric.Labels {
	for i := range partitions {
		if partitions[i].Labels.Text() == l.Text() {
			return partitions[i].Owned
		}
	}
	return nil
}
