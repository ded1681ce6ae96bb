package telemetry

import "github.com/gpumeter/gpumeter/exporter/metric"

// Reading is one reading of a metric: a value, which may be the reason why there is none, or a histogram.
type Reading struct {
	Part, Owned *metric.Labels    // those of the Part it is of; nil for a reading of the whole
	Row         *metric.Labels    // of the reading among those of its metric; nil when there is only one
	Value       metric.Value      // unless there is a histogram
	Histogram   *metric.Histogram // nil: it is a value
}

// Each calls visit for every reading of the family. It allocates nothing.
func (f *Family[T]) Each(read *T, visit func(Reading)) { f.each(read, Reading{}, visit) }

// each fills in a reading, which says which part it is of.
func (f *Family[T]) each(read *T, r Reading, visit func(Reading)) {
	switch {
	case f.Rows != nil:
		for i, row := range f.Rows {
			r.Row, r.Value = f.Desc.Rows[i], *row(read)
			visit(r)
		}
	case f.Keyed != nil:
		for _, k := range *f.Keyed(read) {
			r.Row, r.Value = k.Labels, k.Value
			visit(r)
		}
	default:
		for _, k := range *f.Histograms(read) {
			r.Row, r.Histogram = k.Labels, k.Histogram
			visit(r)
		}
	}
}

// eachPart calls visit for every reading of a family of parts.
func eachPart[T any](f *Family[T], parts []Part[T], visit func(Reading)) {
	for i := range parts {
		p := &parts[i]
		f.each(&p.Read, Reading{Part: p.Labels, Owned: p.Owned}, visit)
	}
}

func eachOf[T any](families []Family[T], read *T, visit func(*metric.Desc, Reading)) {
	for i := range families {
		f := &families[i]
		f.Each(read, func(r Reading) { visit(f.Desc, r) })
	}
}

func eachOfParts[T any](families []Family[T], parts []Part[T], visit func(*metric.Desc, Reading)) {
	for i := range families {
		f := &families[i]
		eachPart(f, parts, func(r Reading) { visit(f.Desc, r) })
	}
}
