package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing wrong with the spec.
type Fault struct {
	Pos
	Text string
}

// Faults are all that is wrong, as one error of one line each.
type Faults []Fault

// Add notes a fault.
func (f *Faults) Add(at Pos, format string, args ...any) {
	*f = append(*f, Fault{at, fmt.Sprintf(format, args...)})
}

// Err returns nil when there is no fault.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// Error lists the faults by file and line.
func (f Faults) Error() string {
	sorted := slices.Clone(f)
	slices.SortStableFunc(sorted, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	lines := make([]string, len(sorted))
	for i, x := range sorted {
		lines[i] = x.Pos.String() + ": " + x.Text
	}
	return strings.Join(slices.Compact(lines), "\n")
}
