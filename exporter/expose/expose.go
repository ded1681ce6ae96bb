// Package expose walks a snapshot series by series, in the one order every way out of the
// exporter shares. Each way out is one package below this one.
package expose

import (
	"strings"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Families are the metrics that are exposed.
type Families struct {
	Descs     []*metric.Desc // in the order they are walked
	device    []telemetry.Family[telemetry.Device]
	partition []telemetry.Family[telemetry.Partition]
	link      []telemetry.Family[telemetry.Link]
	process   []telemetry.Family[telemetry.Process]
	owner     []telemetry.Family[telemetry.Owner]
	workload  []telemetry.Family[telemetry.Workload]
	detail    []telemetry.Family[telemetry.Detail]
	usage     []telemetry.Family[telemetry.Usage]
	engine    []telemetry.Family[telemetry.Engine]
	host      []telemetry.Family[telemetry.Host]
	self      []telemetry.Family[telemetry.Self]
}

// NewFamilies keeps the metrics of the spec for which keep is true.
func NewFamilies(keep func(*metric.Desc) bool) *Families {
	f := new(Families)
	f.device = filter(f, telemetry.DeviceFamilies, keep)
	f.partition = filter(f, telemetry.PartitionFamilies, keep)
	f.link = filter(f, telemetry.LinkFamilies, keep)
	f.process = filter(f, telemetry.ProcessFamilies, keep)
	f.owner = filter(f, telemetry.OwnerFamilies, keep)
	f.workload = filter(f, telemetry.WorkloadFamilies, keep)
	f.detail = filter(f, telemetry.DetailFamilies, keep)
	f.usage = filter(f, telemetry.UsageFamilies, keep)
	f.engine = filter(f, telemetry.EngineFamilies, keep)
	f.host = filter(f, telemetry.HostFamilies, keep)
	f.self = filter(f, telemetry.SelfFamilies, keep)
	return f
}

func filter[T any](f *Families, all []telemetry.Family[T], keep func(*metric.Desc) bool) []telemetry.Family[T] {
	var kept []telemetry.Family[T]
	for _, x := range all {
		if keep(x.Desc) {
			kept = append(kept, x)
			f.Descs = append(f.Descs, x.Desc)
		}
	}
	return kept
}

// Labels are those of one series, in the order they are written: of the thing, of its part, and of
// the row. Each may be nil.
type Labels struct{ Thing, Part, Row *metric.Labels }

// Visitor is told of every series that has a value.
type Visitor interface {
	// Family begins the metric Descs[i]. It is called only when a series follows.
	Family(i int)
	// Value is one series of the family.
	Value(at Labels, number float64)
	// Histogram is one histogram of the family.
	Histogram(at Labels, h *metric.Histogram)
}

// Walk visits all series of a snapshot. It allocates nothing.
func (f *Families) Walk(s *snapshot.Snapshot, v Visitor) {
	w := walker{v: v}
	for i := range f.device {
		w.begin(f.device[i].Desc)
		for j := range s.Devices {
			d := &s.Devices[j]
			walk(&w, &f.device[i], &d.Read, Labels{Thing: w.labels(d)})
		}
		w.index++
	}
	parts(&w, s, f.partition, func(d *telemetry.Device) []telemetry.Part[telemetry.Partition] { return d.Partitions })
	parts(&w, s, f.link, func(d *telemetry.Device) []telemetry.Part[telemetry.Link] { return d.Links })
	parts(&w, s, f.process, func(d *telemetry.Device) []telemetry.Part[telemetry.Process] { return d.Processes })
	things(&w, f.owner, s.Owners)
	things(&w, f.workload, s.Workloads)
	things(&w, f.detail, s.Details)
	things(&w, f.usage, s.Usages)
	things(&w, f.engine, s.Engines)
	for i := range f.host {
		w.begin(f.host[i].Desc)
		if s.Host != nil {
			walk(&w, &f.host[i], s.Host, Labels{})
		}
		w.index++
	}
	for i := range f.self {
		w.begin(f.self[i].Desc)
		walk(&w, &f.self[i], &s.Self, Labels{})
		w.index++
	}
}

// things walks the families of what stands for itself.
func things[T any](w *walker, families []telemetry.Family[T], all []telemetry.Part[T]) {
	for i := range families {
		w.begin(families[i].Desc)
		for j := range all {
			walk(w, &families[i], &all[j].Read, Labels{Thing: all[j].Labels})
		}
		w.index++
	}
}

// parts walks the families of what devices have several of.
func parts[T any](w *walker, s *snapshot.Snapshot, families []telemetry.Family[T], of func(*telemetry.Device) []telemetry.Part[T]) {
	for i := range families {
		w.begin(families[i].Desc)
		for j := range s.Devices {
			d := &s.Devices[j]
			all := of(&d.Read)
			for k := range all {
				at := Labels{Thing: w.labels(d), Part: all[k].Labels}
				if w.owned && all[k].Owned != nil { // also where the same one owns the device: its labels stand once
					at = Labels{Thing: d.Labels, Part: all[k].Owned}
				}
				walk(w, &families[i], &all[k].Read, at)
			}
		}
		w.index++
	}
}

// walker tells the visitor of a family when its first series is met.
type walker struct {
	v     Visitor
	index int
	begun bool
	owned bool // the family is of gauges, which bear the owner's labels; infos have many of their own, which stay when the owner goes
}

func (w *walker) begin(d *metric.Desc) {
	w.begun = false
	w.owned = (d.Kind == metric.KindGauge || d.Kind == metric.KindUpDownCounter) && !strings.HasSuffix(d.Name, ".info")
}

// labels are those the family's series of a device carry.
func (w *walker) labels(d *snapshot.Device) *metric.Labels {
	if w.owned {
		return d.Owned
	}
	return d.Labels
}

func (w *walker) series() Visitor {
	if !w.begun {
		w.begun = true
		w.v.Family(w.index)
	}
	return w.v
}

func walk[T any](w *walker, f *telemetry.Family[T], read *T, at Labels) {
	switch {
	case f.Rows != nil:
		for i, row := range f.Rows {
			if n, ok := row(read).Get(); ok {
				at.Row = f.Desc.Rows[i]
				w.series().Value(at, n)
			}
		}
	case f.Keyed != nil:
		for _, k := range *f.Keyed(read) {
			if n, ok := k.Value.Get(); ok {
				at.Row = k.Labels
				w.series().Value(at, n)
			}
		}
	default:
		for _, k := range *f.Histograms(read) {
			at.Row = k.Labels
			w.series().Histogram(at, k.Histogram)
		}
	}
}
