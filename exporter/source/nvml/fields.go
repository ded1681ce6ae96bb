package nvml

import (
	"strconv"
	"strings"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// field is one number of the driver's (NVML_FI_…) and where its answer goes. The table of all is
// generated from the spec.
type field struct {
	metric      string // OpenTelemetry name
	id          uint32
	first, last int     // major versions of the driver in which the number means this; 0: no bound
	scale       float64 // multiplies the driver's number into the spec's unit
	unit        string
	counter     bool
	to          func(*telemetry.Device) *metric.Value
}

// of says whether the driver knows the field by this number. NVIDIA has given numbers away again:
// 251 is a time in R575 to R589 and a switch before and after, so an unknown driver (0) is asked
// only for those that never moved.
func (f *field) of(driver int) bool {
	if f.first == 0 && f.last == 0 {
		return true
	}
	return driver > 0 && driver >= f.first && (f.last == 0 || driver <= f.last)
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
