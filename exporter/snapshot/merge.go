package snapshot

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// part is what one source read of a device.
type part struct {
	source string
	read   *telemetry.Device // nil: nothing came
	why    *metric.Reason    // the whole of it failed; one that is lost still has the XIDs that tell why
}

// merge writes into dst what several sources say of one device. For each reading, the source the
// spec lists first wins among those with a number; where none has one, the first reason is kept.
// A counter stays with the first source that has it, and is absent while that one is: another's
// count began elsewhere, and going back and forth would look like resets.
func merge(dst *telemetry.Device, parts []part) {
	if len(parts) == 1 {
		if parts[0].read != nil {
			*dst = *parts[0].read
		}
		return
	}
	var order []part
	for _, f := range telemetry.DeviceFamilies {
		order = order[:0]
		for _, name := range f.Desc.Sources {
			for _, p := range parts {
				if p.source == name {
					order = append(order, p)
				}
			}
		}
		counts := f.Desc.Kind == metric.KindCounter || f.Desc.Kind == metric.KindHistogram
		for _, row := range f.Rows {
			mergeValue(row, dst, order, counts)
		}
		if f.Keyed != nil {
			mergeList(f.Keyed, dst, order, counts)
		}
		if f.Histograms != nil {
			mergeList(f.Histograms, dst, order, counts)
		}
	}
	for _, p := range parts { // a list of parts is taken whole: each source names its parts in its own way
		if p.read != nil {
			dst.TakeParts(p.read)
		}
	}
}

func mergeValue(row func(*telemetry.Device) *metric.Value, dst *telemetry.Device, order []part, counts bool) {
	for _, p := range order {
		var v metric.Value
		if p.read != nil {
			v = *row(p.read)
		}
		if _, ok := v.Get(); ok || row(dst).Why() == metric.Unread {
			*row(dst) = v
		}
		switch v.Why() {
		case nil:
			return
		case metric.Unread, metric.Unsupported, metric.Denied: // it never has it, unless it could not say
			if counts && p.why != nil {
				return
			}
		default:
			if counts {
				return
			}
		}
	}
}

// mergeList takes the first list that was read; an empty one says that there was nothing so far.
func mergeList[T any](list func(*telemetry.Device) *[]T, dst *telemetry.Device, order []part, counts bool) {
	for _, p := range order {
		if p.read != nil && *list(p.read) != nil {
			*list(dst) = *list(p.read)
			return
		}
		if counts && p.why != nil {
			return
		}
	}
}
