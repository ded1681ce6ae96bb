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
	Descs    []*metric.Desc           // in the order they are walked
	device   *telemetry.DeviceMetrics // of devices and of their parts
	devices  int                      // how many of Descs these are
	owner    []telemetry.Family[telemetry.Owner]
	workload []telemetry.Family[telemetry.Workload]
	detail   []telemetry.Family[telemetry.Detail]
	usage    []telemetry.Family[telemetry.Usage]
	engine   []telemetry.Family[telemetry.Engine]
	host     []telemetry.Family[telemetry.Host]
	self     []telemetry.Family[telemetry.Self]
}

// NewFamilies keeps the metrics of the spec for which keep is true.
func NewFamilies(keep func(*metric.Desc) bool) *Families {
	f := &Families{device: telemetry.NewDeviceMetrics(keep)}
	f.Descs = f.device.Descs()
	f.devices = len(f.Descs)
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
	kept := telemetry.Keep(all, keep)
	for _, x := range kept {
		f.Descs = append(f.Descs, x.Desc)
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
func (f *Families) Walk(s *snapshot.Snapshot, v Visitor) { f.WalkSome(s, nil, v) }

// WalkSome visits the series of those metrics Descs[i] for which wanted[i] is true; nil wants all.
// It allocates nothing.
func (f *Families) WalkSome(s *snapshot.Snapshot, wanted []bool, v Visitor) {
	w := walker{v: v, wanted: wanted}
	var d *snapshot.Device
	visit := func(r telemetry.Reading) { w.ofDevice(d, r) }
	for i, desc := range f.Descs[:f.devices] {
		if w.begin(desc) {
			for j := range s.Devices {
				d = &s.Devices[j]
				f.device.Each(i, &d.Read, visit)
			}
		}
		w.index++
	}
	things(&w, f.owner, s.Owners)
	things(&w, f.workload, s.Workloads)
	things(&w, f.detail, s.Details)
	things(&w, f.usage, s.Usages)
	things(&w, f.engine, s.Engines)
	single(&w, f.host, s.Host)
	single(&w, f.self, &s.Self)
}

// things walks the families of what stands for itself.
func things[T any](w *walker, families []telemetry.Family[T], all []telemetry.Part[T]) {
	var thing *metric.Labels
	visit := func(r telemetry.Reading) { w.ofThing(thing, r) }
	for i := range families {
		if w.begin(families[i].Desc) {
			for j := range all {
				thing = all[j].Labels
				families[i].Each(&all[j].Read, visit)
			}
		}
		w.index++
	}
}

// single walks the families of what there is one of, or none.
func single[T any](w *walker, families []telemetry.Family[T], one *T) {
	visit := func(r telemetry.Reading) { w.ofThing(nil, r) }
	for i := range families {
		if w.begin(families[i].Desc) && one != nil {
			families[i].Each(one, visit)
		}
		w.index++
	}
}

// walker tells the visitor of a family when its first series is met.
type walker struct {
	v      Visitor
	wanted []bool // by index; nil: all
	index  int
	begun  bool
	owned  bool // the family is of gauges, which bear the owner's labels; infos have many of their own, which stay when the owner goes
}

// begin prepares the walk of a metric and reports whether the metric is wanted.
func (w *walker) begin(d *metric.Desc) bool {
	if w.wanted != nil && !w.wanted[w.index] {
		return false
	}
	w.begun = false
	w.owned = (d.Kind == metric.KindGauge || d.Kind == metric.KindUpDownCounter) && !strings.HasSuffix(d.Name, ".info")
	return true
}

// ofDevice visits a reading of a device or of its part, if it has a value. Gauges carry the owner's labels:
// those of the part where it has an owner, also when the device has the same one, since a label must not be
// repeated.
func (w *walker) ofDevice(d *snapshot.Device, r telemetry.Reading) {
	n, ok := r.Value.Get()
	if !ok && r.Histogram == nil {
		return
	}
	at := Labels{Thing: d.Labels, Part: r.Part, Row: r.Row}
	if w.owned {
		if r.Owned != nil {
			at.Part = r.Owned
		} else {
			at.Thing = d.Owned
		}
	}
	w.series(at, n, r.Histogram)
}

// ofThing visits a reading of what stands for itself, if it has a value.
func (w *walker) ofThing(thing *metric.Labels, r telemetry.Reading) {
	if n, ok := r.Value.Get(); ok || r.Histogram != nil {
		w.series(Labels{Thing: thing, Row: r.Row}, n, r.Histogram)
	}
}

// series visits one series: a histogram, or a number.
func (w *walker) series(at Labels, number float64, h *metric.Histogram) {
	if !w.begun {
		w.begun = true
		w.v.Family(w.index)
	}
	if h != nil {
		w.v.Histogram(at, h)
	} else {
		w.v.Value(at, number)
	}
}
