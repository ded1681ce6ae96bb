package nvml

import (
	"encoding/binary"
	"math"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// blank is where 64 bits begin to stand for no value: the 9.2e18 of drivers in trouble, the infinity
// of a double, DCGM's 0x7ffffffffffffff0, all ones. No count comes near.
const blank = 9_000_000_000_000_000_000

// The members of nvmlValueType_t.
const (
	typeDouble = iota
	typeUint
	typeUlong
	typeUlonglong
	typeLonglong
	typeInt
	typeUshort
)

// raw is a number as the driver gives it: an nvmlValue_t, and the nvmlValueType_t that says how to
// read it.
type raw struct {
	kind uint32
	bits [8]byte
}

// number reads the union. Numbers of no known type, and those that stand for no value, are refused.
func (r raw) number() (n float64, ok bool) {
	long, short := binary.NativeEndian.Uint64(r.bits[:]), binary.NativeEndian.Uint32(r.bits[:])
	switch r.kind {
	case typeDouble:
		n = math.Float64frombits(long)
		return n, !math.IsNaN(n) && !math.IsInf(n, 0)
	case typeUint:
		return float64(short), short != math.MaxUint32
	case typeUlong, typeUlonglong: // a long is 64 bits wherever the driver runs
		return float64(long), long < blank
	case typeLonglong:
		return float64(int64(long)), int64(long) < blank
	case typeInt:
		return float64(int32(short)), true
	case typeUshort:
		return float64(binary.NativeEndian.Uint16(r.bits[:])), true
	}
	return 0, false
}

// plain reads the union, or says that there is no number in it.
func (r raw) plain() (float64, *metric.Reason) {
	n, ok := r.number()
	if !ok {
		return 0, metric.Implausible
	}
	return n, nil
}

// wide says that the number has room for a count of 64 bits.
func (r raw) wide() bool { return r.kind == typeUlong || r.kind == typeUlonglong }

// wide reads a count of bytes, which goes round within a second where the driver keeps 32 bits:
// such a device has no count.
func wide(r raw) (float64, *metric.Reason) {
	n, why := r.plain()
	if why == nil && r.kind == typeUint {
		why = metric.Unsupported
	} else if !r.wide() {
		why = metric.Implausible
	}
	return n, why
}

// bitErrorRate reads m·10^-e with the exponent in bits 0 to 7 and the mantissa in bits 8 to 11, as
// the header's NVML_NVLINK_ERROR_COUNTER_BER_GET takes it apart.
func bitErrorRate(r raw) (float64, *metric.Reason) {
	n, why := r.plain()
	if why != nil || n < 0 || n > 0xfff {
		return 0, metric.Implausible
	}
	exponent, mantissa := int(n)&0xff, int(n)>>8
	return float64(mantissa) * math.Pow10(-exponent), nil
}

// nvlinkState reads the NVML_NVLINK_STATE_* of the header: a link that sleeps, 2, wakes when it is needed.
func nvlinkState(r raw) (float64, *metric.Reason) {
	n, why := r.plain()
	switch {
	case why != nil:
	case n == 0 || n == 1:
	case n == 2:
		n = 1
	default:
		why = metric.Implausible
	}
	return n, why
}

// nvlinkVersions are the generations of nvmlNvlinkVersion_t.
var nvlinkVersions = [...]float64{1: 1, 2: 2, 3: 2.2, 4: 3, 5: 3.1, 6: 4, 7: 5, 8: 6}

// nvlinkVersion reads the generation of a link; 0 stands for a link that has none, being down.
func nvlinkVersion(r raw) (float64, *metric.Reason) {
	n, why := r.plain()
	switch {
	case why != nil:
		return 0, why
	case n == 0:
		return 0, metric.NoData
	case n < 1 || n >= float64(len(nvlinkVersions)):
		return 0, metric.Implausible
	}
	return nvlinkVersions[int(n)], nil
}
