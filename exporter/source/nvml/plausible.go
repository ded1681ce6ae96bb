//go:build cgo

package nvml

import (
	"encoding/binary"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

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

// What NVML's numbers are multiplied by.
const (
	whole   = 1
	milli   = 1e-3
	mega    = 1e6
	percent = 1e-2
)

// number is any integer NVML answers with.
type number interface{ ~uint32 | ~uint64 | ~int32 }

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
	}
	return n >= 0 && !math.IsInf(n, 1)
}

// blank is where 64 bits begin to stand for no value: the infinity of a double, DCGM's
// 0x7ffffffffffffff0, all ones. No count comes near.
const blank = 0x7ff0_0000_0000_0000

// union is an nvmlValue_t as the driver fills it in.
type union [8]byte

// decode reads the union by its nvmlValueType_t. Numbers of no known type, and those that stand
// for no value, are refused.
func (u union) decode(kind nvml.ValueType) (n float64, ok bool) {
	long := binary.NativeEndian.Uint64(u[:])
	short := binary.NativeEndian.Uint32(u[:])
	switch kind {
	case nvml.VALUE_TYPE_DOUBLE:
		n = math.Float64frombits(long)
		return n, !math.IsNaN(n) && !math.IsInf(n, 0)
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return float64(short), short != math.MaxUint32
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG: // a long is 64 bits wherever the driver runs
		return float64(long), long < blank
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return float64(int64(long)), int64(long) < blank
	case nvml.VALUE_TYPE_SIGNED_INT:
		return float64(int32(short)), true
	case nvml.VALUE_TYPE_UNSIGNED_SHORT:
		return float64(binary.NativeEndian.Uint16(u[:])), true
	}
	return 0, false
}
