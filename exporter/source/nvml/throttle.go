//go:build cgo

package nvml

import (
	"math/bits"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// causeBits are the bits of nvmlClocksEventReasons, by the spec's cause. The idle bit is no cause:
// a clock that nobody needs is not held down.
var causeBits = [...]uint64{
	telemetry.ThrottleCauseSWPowerCap:         nvml.ClocksEventReasonSwPowerCap,
	telemetry.ThrottleCauseHWSlowdown:         nvml.ClocksThrottleReasonHwSlowdown,
	telemetry.ThrottleCauseSyncBoost:          nvml.ClocksEventReasonSyncBoost,
	telemetry.ThrottleCauseSWThermal:          nvml.ClocksEventReasonSwThermalSlowdown,
	telemetry.ThrottleCauseHWThermal:          nvml.ClocksThrottleReasonHwThermalSlowdown,
	telemetry.ThrottleCauseHWPowerBrake:       nvml.ClocksThrottleReasonHwPowerBrakeSlowdown,
	telemetry.ThrottleCauseApplicationsClocks: nvml.ClocksEventReasonApplicationsClocksSetting,
	telemetry.ThrottleCauseDisplayClocks:      nvml.ClocksEventReasonDisplayClockSetting,
	telemetry.ThrottleCauseUnknown:            ^uint64(nvml.ClocksEventReasonAll),
}

// bucketBits are the causes of each bucket, as spec/attributes.yaml groups them.
var bucketBits = [...]uint64{
	telemetry.ThrottleBucketPower:   union(telemetry.ThrottleCauseSWPowerCap, telemetry.ThrottleCauseHWPowerBrake),
	telemetry.ThrottleBucketThermal: union(telemetry.ThrottleCauseSWThermal, telemetry.ThrottleCauseHWThermal),
	telemetry.ThrottleBucketSW: union(telemetry.ThrottleCauseSWPowerCap, telemetry.ThrottleCauseSyncBoost,
		telemetry.ThrottleCauseSWThermal, telemetry.ThrottleCauseApplicationsClocks, telemetry.ThrottleCauseDisplayClocks),
	telemetry.ThrottleBucketHW: union(telemetry.ThrottleCauseHWSlowdown, telemetry.ThrottleCauseHWThermal,
		telemetry.ThrottleCauseHWPowerBrake, telemetry.ThrottleCauseUnknown),
}

func union(causes ...telemetry.ThrottleCause) uint64 {
	var all uint64
	for _, c := range causes {
		all |= causeBits[c]
	}
	return all
}

// mostNew is how many causes at once a driver may tell that this version does not know. With more of
// them the bits are no causes.
const mostNew = 3

func throttle(p *pass, out *telemetry.Throttle) {
	q, ask := askEventReasons, p.dev.GetCurrentClocksEventReasons
	if p.h.answers.absent[askEventReasons] { // before R535
		q, ask = askThrottleReasons, p.dev.GetCurrentClocksThrottleReasons
	}
	active, why := call(p, q, 0, ask)
	if why == metric.Unread {
		return
	}
	if why == nil && bits.OnesCount64(active&causeBits[telemetry.ThrottleCauseUnknown]) > mostNew {
		why = metric.Implausible
	}
	for i, mask := range causeBits {
		putBits(&out.Reason[i], why, active&mask, p.h.reasons&mask)
	}
	for i, mask := range bucketBits {
		putBits(&out.Active[i], why, active&mask, p.h.reasons&mask)
	}
}

// putBits is 1 when a bit is set. A device that can not have any of them says nothing with its
// zero; one that has it all the same is believed.
func putBits(v *metric.Value, why *metric.Reason, active, supported uint64) {
	switch {
	case why != nil:
		v.Fail(why)
	case active == 0 && supported == 0:
		v.Fail(metric.Unsupported)
	default:
		v.SetBool(active != 0)
	}
}

// supportedReasons are the bits the device can have, with those not known to this version; all
// where the driver does not tell.
func supportedReasons(dev device, lib library) uint64 {
	var mask uint64
	ret := nvml.ERROR_FUNCTION_NOT_FOUND
	switch {
	case has(lib, "nvmlDeviceGetSupportedClocksEventReasons"):
		mask, ret = dev.GetSupportedClocksEventReasons()
	case has(lib, "nvmlDeviceGetSupportedClocksThrottleReasons"): // before R535
		mask, ret = dev.GetSupportedClocksThrottleReasons()
	}
	if ret != nvml.SUCCESS {
		return ^uint64(0)
	}
	return mask | causeBits[telemetry.ThrottleCauseUnknown]
}
