//go:build cgo

package nvml

import "math"

// Units of the spec, as the reader lines name them.
const (
	celsius = "Cel"
	hertz   = "Hz"
	watts   = "W"
	joules  = "J"
	bytes   = "By"
	seconds = "s"
	ratio   = "1"
	state   = ""
)

// whole is the scale of a number in the spec's unit. All others are in zz_scales.go.
const whole = 1

// few is far above what any device has of its parts.
const few = 1 << 20

// lastState is far above the numbers of any of the driver's enumerations.
const lastState = 255

// number is any integer NVML answers with.
type number interface {
	~uint32 | ~uint64 | ~int32 | ~int
}

// plausible says whether a device can have the number. Drivers have been seen to answer with
// 808334905 percent and with the pattern they keep for "no value".
func plausible(unit string, n float64) bool {
	switch unit {
	case celsius:
		return n >= -50 && n <= 250
	case hertz:
		return n >= 0 && n <= 20e9
	case watts:
		return n >= 0 && n <= 20e3
	case ratio:
		return n >= 0 && n <= 1
	case state:
		return n == 0 || n == 1
	case "{bank}", "{lane}", "{link}", "{multiprocessor}", "{page}", "{row}", "{session}", "{slice}":
		return n >= 0 && n <= few
	}
	return n >= 0 && !math.IsInf(n, 1)
}
