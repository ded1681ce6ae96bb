package sim

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// bucketCauses are the causes of each bucket, as spec/attributes.yaml groups them.
var bucketCauses = [...]causes{
	telemetry.ThrottleBucketPower:   setOf(telemetry.ThrottleCauseSWPowerCap, telemetry.ThrottleCauseHWPowerBrake),
	telemetry.ThrottleBucketThermal: setOf(telemetry.ThrottleCauseSWThermal, telemetry.ThrottleCauseHWThermal),
	telemetry.ThrottleBucketSW: setOf(telemetry.ThrottleCauseSWPowerCap, telemetry.ThrottleCauseSyncBoost,
		telemetry.ThrottleCauseSWThermal, telemetry.ThrottleCauseApplicationsClocks, telemetry.ThrottleCauseDisplayClocks),
	telemetry.ThrottleBucketHW: setOf(telemetry.ThrottleCauseHWSlowdown, telemetry.ThrottleCauseHWThermal,
		telemetry.ThrottleCauseHWPowerBrake, telemetry.ThrottleCauseUnknown),
}

// timed are the causes NVIDIA's driver has a counter for.
var timed = setOf(telemetry.ThrottleCauseSWPowerCap, telemetry.ThrottleCauseSyncBoost,
	telemetry.ThrottleCauseSWThermal, telemetry.ThrottleCauseHWThermal, telemetry.ThrottleCauseHWPowerBrake)

func (d *device) throttle(out *telemetry.Throttle) {
	held := d.physics.now.held
	for i := range out.Reason {
		cause := telemetry.ThrottleCause(i)
		one := setOf(cause)
		if !d.board.causes {
			out.Reason[i].Fail(metric.Unsupported)
			out.Time[i].Fail(metric.Unsupported)
			continue
		}
		out.Reason[i].SetBool(held&one != 0)
		tell(&out.Time[i], timed&one != 0, d.physics.heldSeconds(cause))
	}
	for i := range out.PolicyTime {
		tell(&out.PolicyTime[i], d.board.causes, d.policySeconds(telemetry.ThrottlePolicy(i)))
	}
	for i := range out.Active {
		out.Active[i].Fail(metric.Unsupported)
	}
	for _, b := range d.board.buckets {
		out.Active[b].SetBool(held&bucketCauses[b] != 0)
	}
}

// policySeconds is the time a policy held the clocks down. Limits of the board, voltage and too
// little to do hold no clocks here.
func (d *device) policySeconds(p telemetry.ThrottlePolicy) float64 {
	switch p {
	case telemetry.ThrottlePolicyThermal:
		return d.physics.heldSeconds(telemetry.ThrottleCauseSWThermal)
	case telemetry.ThrottlePolicyApplicationClocks:
		return d.physics.belowSeconds(applicationFloor)
	case telemetry.ThrottlePolicyBaseClocks:
		return d.physics.belowSeconds(baseFloor)
	}
	return 0
}
