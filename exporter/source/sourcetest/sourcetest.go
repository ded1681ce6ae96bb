// Package sourcetest holds the test every source must pass.
package sourcetest

import (
	"slices"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// SpecIsRead checks that a source reads every metric the spec says it gives, and no other.
// What was read must come from a fake that answers every question.
func SpecIsRead[T any](t *testing.T, source string, families []telemetry.Family[T], read *T) {
	t.Helper()
	for _, f := range families {
		promised := slices.Contains(f.Desc.Sources, source)
		if got := anyRead(f, read); got != promised {
			t.Errorf("%s: the spec lists %s: %v, %s reads it: %v", f.Desc.Name, source, promised, source, got)
		}
	}
}

func anyRead[T any](f telemetry.Family[T], read *T) bool {
	for _, row := range f.Rows {
		if row(read).Why() != metric.Unread {
			return true
		}
	}
	return f.Keyed != nil && len(*f.Keyed(read)) > 0 ||
		f.Histograms != nil && len(*f.Histograms(read)) > 0
}

// Merge takes over what was read of another thing of the same scope, where things differ in what
// they have.
func Merge[T any](families []telemetry.Family[T], into, from *T) {
	for _, f := range families {
		for _, row := range f.Rows {
			if row(into).Why() == metric.Unread {
				*row(into) = *row(from)
			}
		}
		if f.Keyed != nil && len(*f.Keyed(into)) == 0 {
			*f.Keyed(into) = *f.Keyed(from)
		}
	}
}
