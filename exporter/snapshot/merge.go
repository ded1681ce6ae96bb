package snapshot

import (
	"slices"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// part is what one source read of a device.
type part struct {
	source string
	read   *telemetry.Device
}

// merge writes into dst what several sources say of one device. For each reading, the source the
// spec lists first wins among those with a number; where none has one, the first reason is kept.
func merge(dst *telemetry.Device, parts []part) {
	switch len(parts) {
	case 0:
		return
	case 1:
		*dst = *parts[0].read
		return
	}
	for _, f := range telemetry.DeviceFamilies {
		for _, name := range f.Desc.Sources {
			i := slices.IndexFunc(parts, func(p part) bool { return p.source == name })
			if i < 0 {
				continue
			}
			src := parts[i].read
			for _, row := range f.Rows {
				take(row(dst), *row(src))
			}
			if f.Keyed != nil && len(*f.Keyed(dst)) == 0 {
				*f.Keyed(dst) = *f.Keyed(src)
			}
			if f.Histograms != nil && len(*f.Histograms(dst)) == 0 {
				*f.Histograms(dst) = *f.Histograms(src)
			}
		}
	}
}

// take replaces a reading without a number by one that has one, or that at least has a reason.
func take(dst *metric.Value, src metric.Value) {
	if _, ok := dst.Get(); ok {
		return
	}
	if _, ok := src.Get(); ok || dst.Why() == metric.Unread {
		*dst = src
	}
}
