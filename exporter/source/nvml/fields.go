package nvml

import (
	"strconv"
	"strings"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// field is one number of the driver's (NVML_FI_…) and where its answer goes. The tables of all are
// generated from the spec. T is what the reading is of: a device, or one of its links.
type field[T any] struct {
	metric      string             // OpenTelemetry name
	link        telemetry.LinkType // which sort of link has it
	id, part    uint32
	first, last int     // major versions of the driver in which the number means this; 0: no bound
	scale       float64 // multiplies the driver's number into the spec's unit
	unit        string
	counter     bool
	instead     bool                                // read where the device does not know the numbers before it
	as          func(raw) (float64, *metric.Reason) // makes sense of the raw number; nil: it is plain
	to          func(*T) *metric.Value

	states func(*T) []metric.Value // instead of to: the one that holds is 1
	means  []int                   // which state each number from 0 on is
	other  int                     // the state of all others; negative: they mean nothing
}

// of says whether the driver knows the field by this number. NVIDIA has given numbers away again:
// 251 is a time in R575 to R589 and a switch before and after, so an unknown driver (0) is asked
// only for those that never moved.
func (f *field[T]) of(driver int) bool {
	if f.first == 0 && f.last == 0 {
		return true
	}
	return driver > 0 && driver >= f.first && (f.last == 0 || driver <= f.last)
}

// fail keeps the reason there is no answer, unless another number gave one.
func (f *field[T]) fail(out *T, why *metric.Reason) {
	if f.states != nil {
		for i := range f.states(out) {
			f.states(out)[i].Fail(why)
		}
		return
	}
	if v := f.to(out); v.Why() == metric.Unread || v.Why() == metric.Unsupported {
		v.Fail(why)
	}
}

// set keeps an answer in the spec's unit.
func (f *field[T]) set(out *T, n float64) {
	if f.states == nil {
		f.to(out).Set(n)
		return
	}
	holds := f.other
	if i := int(n); n >= 0 && i < len(f.means) {
		holds = f.means[i]
	}
	states := f.states(out)
	for i := range states {
		if holds < 0 {
			states[i].Fail(metric.Implausible)
		} else {
			states[i].SetBool(i == holds)
		}
	}
}

// major is the first number of a driver's version, 0 when it can not be told.
func major(version string) int {
	digits, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
