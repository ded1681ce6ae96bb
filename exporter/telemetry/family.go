package telemetry

import "github.com/gpumeter/gpumeter/exporter/metric"

// Family leads from a description to where its readings stand in a T (a Device, a Host, …).
// Exactly one of Rows, Keyed and Histograms is set.
type Family[T any] struct {
	Desc *metric.Desc
	// Rows has one accessor per entry of Desc.Rows, for metrics whose attributes are all closed.
	Rows []func(*T) *metric.Value
	// Keyed returns the readings of a metric with an open attribute.
	Keyed func(*T) *[]metric.Keyed
	// Histograms returns those of a histogram, keyed the same way.
	Histograms func(*T) *[]KeyedHistogram
}

// KeyedHistogram is one histogram and the labels that tell it from its siblings.
type KeyedHistogram struct {
	Labels    *metric.Labels
	Histogram *metric.Histogram
}

func describe[T any](all []*metric.Desc, families []Family[T]) []*metric.Desc {
	for _, f := range families {
		all = append(all, f.Desc)
	}
	return all
}

// Keep returns the families for whose description keep is true.
func Keep[T any](families []Family[T], keep func(*metric.Desc) bool) []Family[T] {
	var kept []Family[T]
	for _, f := range families {
		if keep(f.Desc) {
			kept = append(kept, f)
		}
	}
	return kept
}

// Part is one of several things of a scope, and what was read of it: a partition, a link or a
// process of a device, or a workload.
type Part[T any] struct {
	Labels *metric.Labels // its own; those of the whole it is a part of come before them
	Owned  *metric.Labels // the same and who owns it, told on its gauges instead of who owns the whole
	Read   T
}
