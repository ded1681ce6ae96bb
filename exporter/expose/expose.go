// Package expose walks a snapshot series by series, in the one order every way out of the
// exporter shares. Each way out is one package below this one.
package expose

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Families are the metrics that are exposed.
type Families struct {
	Descs  []*metric.Desc // in the order they are walked
	device []telemetry.Family[telemetry.Device]
	host   []telemetry.Family[telemetry.Host]
	self   []telemetry.Family[telemetry.Self]
}

// NewFamilies keeps the metrics of the spec for which keep is true.
func NewFamilies(keep func(*metric.Desc) bool) *Families {
	f := new(Families)
	f.device = filter(f, telemetry.DeviceFamilies, keep)
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

// Visitor is told of every series that has a value.
type Visitor interface {
	// Family begins the metric Descs[i]. It is called only when a series follows.
	Family(i int)
	// Value is one series of the family: the labels of the thing, then those of the row.
	Value(thing, row *metric.Labels, number float64)
	// Histogram is one histogram of the family.
	Histogram(thing, row *metric.Labels, h *metric.Histogram)
}

// Walk visits all series of a snapshot. It allocates nothing.
func (f *Families) Walk(s *snapshot.Snapshot, v Visitor) {
	w := walker{v: v}
	for i := range f.device {
		x := &f.device[i]
		w.begin()
		owned := x.Desc.Kind == metric.KindGauge || x.Desc.Kind == metric.KindUpDownCounter
		for j := range s.Devices {
			d := &s.Devices[j]
			labels := d.Labels
			if owned {
				labels = d.Owned
			}
			walk(&w, x, &d.Read, labels)
		}
		w.index++
	}
	for i := range f.host {
		w.begin()
		if s.Host != nil {
			walk(&w, &f.host[i], s.Host, nil)
		}
		w.index++
	}
	for i := range f.self {
		w.begin()
		walk(&w, &f.self[i], &s.Self, nil)
		w.index++
	}
}

// walker tells the visitor of a family when its first series is met.
type walker struct {
	v     Visitor
	index int
	begun bool
}

func (w *walker) begin() { w.begun = false }

func (w *walker) series() Visitor {
	if !w.begun {
		w.begun = true
		w.v.Family(w.index)
	}
	return w.v
}

func walk[T any](w *walker, f *telemetry.Family[T], read *T, labels *metric.Labels) {
	switch {
	case f.Rows != nil:
		for i, row := range f.Rows {
			if n, ok := row(read).Get(); ok {
				w.series().Value(labels, f.Desc.Rows[i], n)
			}
		}
	case f.Keyed != nil:
		for _, k := range *f.Keyed(read) {
			if n, ok := k.Value.Get(); ok {
				w.series().Value(labels, k.Labels, n)
			}
		}
	default:
		for _, k := range *f.Histograms(read) {
			w.series().Histogram(labels, k.Labels, k.Histogram)
		}
	}
}
