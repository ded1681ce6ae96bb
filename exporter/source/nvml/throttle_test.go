//go:build cgo

package nvml

import (
	"slices"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func TestThrottle(t *testing.T) {
	type (
		causes  []telemetry.ThrottleCause
		buckets []telemetry.ThrottleBucket
	)
	const (
		power, thermal = telemetry.ThrottleBucketPower, telemetry.ThrottleBucketThermal
		sw, hw         = telemetry.ThrottleBucketSW, telemetry.ThrottleBucketHW
	)
	for _, c := range []struct {
		bits    uint64
		causes  causes
		buckets buckets
	}{
		{0x0, nil, nil},
		{0x1, nil, nil}, // idle is no cause
		{0x2, causes{telemetry.ThrottleCauseApplicationsClocks}, buckets{sw}},
		{0x4, causes{telemetry.ThrottleCauseSWPowerCap}, buckets{power, sw}},
		{0x8, causes{telemetry.ThrottleCauseHWSlowdown}, buckets{hw}},
		{0x10, causes{telemetry.ThrottleCauseSyncBoost}, buckets{sw}},
		{0x20, causes{telemetry.ThrottleCauseSWThermal}, buckets{thermal, sw}},
		{0x40, causes{telemetry.ThrottleCauseHWThermal}, buckets{thermal, hw}},
		{0x80, causes{telemetry.ThrottleCauseHWPowerBrake}, buckets{power, hw}},
		{0x100, causes{telemetry.ThrottleCauseDisplayClocks}, buckets{sw}},
		{0x200, causes{telemetry.ThrottleCauseUnknown}, buckets{hw}},
		{1 << 63, causes{telemetry.ThrottleCauseUnknown}, buckets{hw}},
		{0x5, causes{telemetry.ThrottleCauseSWPowerCap}, buckets{power, sw}},
		{0x48, causes{telemetry.ThrottleCauseHWSlowdown, telemetry.ThrottleCauseHWThermal}, buckets{thermal, hw}},
	} {
		d := answering("GPU-0")
		d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return c.bits, nvml.SUCCESS }
		out, _ := readOnce(t, newFakeLibrary(d))
		for i, v := range out.Throttle.Reason {
			cause, set := telemetry.ThrottleCause(i), 0.
			if slices.Contains(c.causes, cause) {
				set = 1
			}
			want(t, cause.String(), v, set)
		}
		for i, v := range out.Throttle.Active {
			bucket, set := telemetry.ThrottleBucket(i), 0.
			if slices.Contains(c.buckets, bucket) {
				set = 1
			}
			want(t, bucket.String(), v, set)
		}
		if t.Failed() {
			t.Fatalf("with bits %#x", c.bits)
		}
	}
}

// Which causes a device can have is asked again when refusals are forgotten: it may not have been told.
func TestThrottleToldLate(t *testing.T) {
	d := answering("GPU-0")
	d.GetSupportedClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
	n := started(t, newFakeLibrary(d))
	h := n.list()[0]
	want(t, "while it is not told", n.read(h).Throttle.Reason[telemetry.ThrottleCauseSWThermal], 0.)
	d.GetSupportedClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0x5, nvml.SUCCESS }
	n.turn(2 * forgetEvery)
	want(t, "a cause it has not", n.read(h).Throttle.Reason[telemetry.ThrottleCauseSWThermal], metric.Unsupported)
}

func TestThrottleUnsupported(t *testing.T) {
	d := answering("GPU-0")
	d.GetSupportedClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0x5, nvml.SUCCESS }
	d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0x8, nvml.SUCCESS }
	out, _ := readOnce(t, newFakeLibrary(d))
	reason, active := out.Throttle.Reason, out.Throttle.Active
	want(t, "a cause it has", reason[telemetry.ThrottleCauseSWPowerCap], 0.)
	want(t, "a cause it has not", reason[telemetry.ThrottleCauseSWThermal], metric.Unsupported)
	want(t, "one it says it has not, and has", reason[telemetry.ThrottleCauseHWSlowdown], 1.)
	want(t, "unknown", reason[telemetry.ThrottleCauseUnknown], 0.)
	want(t, "a bucket of which it has none", active[telemetry.ThrottleBucketThermal], metric.Unsupported)
	want(t, "a bucket of which it has one", active[telemetry.ThrottleBucketPower], 0.)

	d.GetSupportedClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	out, _ = readOnce(t, newFakeLibrary(d))
	want(t, "where the driver does not say", out.Throttle.Reason[telemetry.ThrottleCauseSWThermal], 0.)

	for _, bits := range []uint64{808334905, 1<<64 - 1, 9_200_000_000_000_000_000} {
		d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return bits, nvml.SUCCESS }
		out, _ = readOnce(t, newFakeLibrary(d))
		want(t, "bits that are none", out.Throttle.Reason[telemetry.ThrottleCauseSWThermal], metric.Implausible)
		want(t, "bits that are none", out.Throttle.Active[telemetry.ThrottleBucketHW], metric.Implausible)
	}
	d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0, nvml.ERROR_NO_PERMISSION }
	out, _ = readOnce(t, newFakeLibrary(d))
	want(t, "denied", out.Throttle.Reason[telemetry.ThrottleCauseUnknown], metric.Denied)
	want(t, "denied", out.Throttle.Active[telemetry.ThrottleBucketHW], metric.Denied)
}
