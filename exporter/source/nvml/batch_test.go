//go:build cgo

package nvml

import (
	"encoding/binary"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// valued is a field's value of a type, its number given as the 64 bits of the union.
func valued(kind nvml.ValueType, bits uint64) nvml.FieldValue {
	v := nvml.FieldValue{ValueType: uint32(kind)}
	binary.NativeEndian.PutUint64(v.Value[:], bits)
	return v
}

func failing(ret nvml.Return) nvml.FieldValue { return nvml.FieldValue{NvmlReturn: uint32(ret)} }

const (
	ull = nvml.VALUE_TYPE_UNSIGNED_LONG_LONG
	u32 = nvml.VALUE_TYPE_UNSIGNED_INT
)

func TestDecode(t *testing.T) {
	minus5, minus7 := int32(-5), int64(-7)
	for _, c := range []struct {
		kind nvml.ValueType
		bits uint64
		want float64
		ok   bool
	}{
		{nvml.VALUE_TYPE_DOUBLE, math.Float64bits(1.5), 1.5, true},
		{nvml.VALUE_TYPE_DOUBLE, math.Float64bits(math.NaN()), 0, false},
		{nvml.VALUE_TYPE_DOUBLE, 0x7ff0_0000_0000_0000, 0, false},
		{u32, 42, 42, true},
		{u32, 0xdead_beef_0000_002a, 42, true}, // the upper half is not written
		{u32, 0xffff_ffff, 0, false},
		{nvml.VALUE_TYPE_UNSIGNED_LONG, 1 << 40, 1 << 40, true},
		{ull, 1 << 40, 1 << 40, true},
		{ull, math.MaxUint64, 0, false},
		{ull, 0x7fff_ffff_ffff_fff0, 0, false},
		{nvml.VALUE_TYPE_SIGNED_LONG_LONG, uint64(minus7), -7, true},
		{nvml.VALUE_TYPE_SIGNED_LONG_LONG, 0x7fff_ffff_ffff_fff2, 0, false},
		{nvml.VALUE_TYPE_SIGNED_INT, uint64(uint32(minus5)), -5, true},
		{nvml.VALUE_TYPE_UNSIGNED_SHORT, 0xffff_0007, 7, true},
		{nvml.ValueType(99), 1, 0, false},
	} {
		r := raw{kind: uint32(c.kind)}
		binary.NativeEndian.PutUint64(r.bits[:], c.bits)
		if got, ok := r.number(); ok != c.ok || ok && got != c.want {
			t.Errorf("type %d, bits %#x: %v %v, want %v %v", c.kind, c.bits, got, ok, c.want, c.ok)
		}
	}
}

func TestBatch(t *testing.T) {
	d := answering("GPU-0")
	d.fields(map[uint32]nvml.FieldValue{
		3: valued(ull, 7), 4: valued(u32, 2), 5: valued(nvml.VALUE_TYPE_DOUBLE, math.Float64bits(7)), 6: failing(nvml.ERROR_UNKNOWN),
		1: valued(u32, 1), 2: valued(u32, 2),
		187: valued(u32, 100_000), 188: valued(u32, 0xffff_ffff), 189: failing(nvml.ERROR_NOT_SUPPORTED),
		190: failing(nvml.ERROR_NO_PERMISSION), 192: valued(nvml.VALUE_TYPE_SIGNED_INT, 1<<32-1),
		82: valued(u32, 64),
		74: valued(ull, 3e9), 76: valued(u32, 1), 251: valued(ull, 1e18), 252: failing(nvml.ERROR_NO_DATA), 253: valued(ull, 0),
	})
	out, why := readOnce(t, newFakeLibrary(d))
	if why != nil {
		t.Fatal(why)
	}
	want(t, "corrected", out.ECC.Errors[telemetry.ECCErrorTypeCorrected], 7.)
	want(t, "uncorrected, of 32 bits", out.ECC.Errors[telemetry.ECCErrorTypeUncorrected], 2.)
	want(t, "a count in fractions", out.ECC.LifetimeErrors[telemetry.ECCErrorTypeCorrected], metric.Implausible)
	want(t, "unknown error", out.ECC.LifetimeErrors[telemetry.ECCErrorTypeUncorrected], faults[nvml.ERROR_UNKNOWN])
	want(t, "ECC on", out.ECC.Enabled[telemetry.ModePhaseCurrent], 1.)
	want(t, "a state of 2", out.ECC.Enabled[telemetry.ModePhasePending], metric.Implausible)
	want(t, "lowest limit", out.Power.Limit[telemetry.PowerLimitTypeMin], 100.)
	want(t, "limit of all ones", out.Power.Limit[telemetry.PowerLimitTypeMax], metric.Implausible)
	want(t, "limit it has not", out.Power.Limit[telemetry.PowerLimitTypeDefault], metric.Unsupported)
	want(t, "limit it keeps to itself", out.Power.Limit[telemetry.PowerLimitTypeEnforced], metric.Denied)
	want(t, "limit below zero", out.Power.Limit[telemetry.PowerLimitTypeRequested], metric.Implausible)
	want(t, "memory temperature", out.Thermal.Temperature[telemetry.TemperatureSensorMemory], 64.)
	want(t, "throttled by the power cap", out.Throttle.Time[telemetry.ThrottleCauseSWPowerCap], 3.)
	want(t, "a switch in the place of a time", out.Throttle.Time[telemetry.ThrottleCauseSyncBoost], metric.Implausible)
	want(t, "longer than the machine runs", out.Throttle.Time[telemetry.ThrottleCauseSWThermal], metric.Implausible)
	want(t, "no data", out.Throttle.Time[telemetry.ThrottleCauseHWThermal], metric.NoData)
	want(t, "never", out.Throttle.Time[telemetry.ThrottleCauseHWPowerBrake], 0.)
}

// What the spec has and this driver has not is not asked, and not left unread.
func TestBatchOldDriver(t *testing.T) {
	d := answering("GPU-0")
	d.fields(map[uint32]nvml.FieldValue{251: valued(ull, 1), 269: valued(ull, 1), 74: valued(ull, 1e9)})
	l := newFakeLibrary(d)
	l.driver = "570.124.06"
	out, _ := readOnce(t, l)
	want(t, "since R575", out.Throttle.Time[telemetry.ThrottleCauseSWThermal], metric.Unsupported)
	want(t, "ever", out.Throttle.Time[telemetry.ThrottleCauseSWPowerCap], 1.)
}

func TestBatchFails(t *testing.T) {
	d := answering("GPU-0")
	d.GetFieldValuesFunc = func([]nvml.FieldValue) nvml.Return { return nvml.ERROR_NOT_SUPPORTED }
	out, why := readOnce(t, newFakeLibrary(d))
	if why != nil {
		t.Fatal(why)
	}
	want(t, "limit", out.Power.Limit[telemetry.PowerLimitTypeMin], metric.Unsupported)

	d.GetFieldValuesFunc = func([]nvml.FieldValue) nvml.Return { return nvml.SUCCESS } // and nothing filled in
	out, _ = readOnce(t, newFakeLibrary(d))
	want(t, "an entry left alone", out.Power.Limit[telemetry.PowerLimitTypeMin], metric.NoData)

	d.fields(map[uint32]nvml.FieldValue{3: failing(nvml.ERROR_GPU_IS_LOST)})
	if _, why := readOnce(t, newFakeLibrary(d)); why != metric.Lost {
		t.Errorf("an entry says the device is lost, the read %v", why)
	}
}

func TestTime(t *testing.T) {
	up := time.Hour
	b := newBatch[telemetry.Device](func() time.Duration { return up })
	x := item[telemetry.Device]{field: &field[telemetry.Device]{unit: seconds, counter: true}}
	for _, c := range []struct {
		at   float64
		kind nvml.ValueType
		want bool
	}{
		{10, ull, true}, {11, ull, true}, {9, ull, false}, {9, ull, true}, {12, u32, false},
		{3600 + 61, ull, false}, {13, ull, true}, {3600 + 59, ull, true},
	} {
		if got := b.counts(&x, raw{kind: uint32(c.kind)}, c.at); got != c.want {
			t.Errorf("%v s of type %d: %v, want %v", c.at, c.kind, got, c.want)
		}
	}
	if up = 0; !b.counts(&x, raw{kind: uint32(ull)}, 1e9) {
		t.Error("where the uptime is not known, any time is believed")
	}
}

// A single lower number is a slip; one that stays low is a reset.
func TestCounter(t *testing.T) {
	for name, steps := range map[string][]struct {
		n    float64
		want bool
	}{
		"rises":         {{0, true}, {5, true}, {5, true}, {7, true}},
		"slips":         {{10, true}, {3, false}, {11, true}, {2, false}, {12, true}},
		"is reset":      {{10, true}, {0, false}, {1, true}, {2, true}},
		"falls further": {{10, true}, {5, false}, {4, false}, {4, true}},
	} {
		var c counter
		for i, s := range steps {
			if got := c.rises(s.n); got != s.want {
				t.Errorf("%s: step %d, to %v: believed %v, want %v", name, i, s.n, got, s.want)
			}
		}
	}
}

func TestUptimeRuns(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("known on Linux alone")
	}
	before := uptime()
	time.Sleep(10 * time.Millisecond)
	if after := uptime(); before == 0 || after-before < 10*time.Millisecond {
		t.Errorf("%v, and 10ms later %v", before, after)
	}
}
