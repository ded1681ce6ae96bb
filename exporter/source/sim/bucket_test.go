package sim

import (
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Each cause alone is in the buckets spec/attributes.yaml puts it in, also those that never come
// alone, or never, in a simulation.
func TestBucketsOfEachCause(t *testing.T) {
	_, devices := start(t, "h100x1", 1)
	d := devices[0].(*device)
	for cause, want := range map[telemetry.ThrottleCause]string{
		telemetry.ThrottleCauseSWPowerCap:         "power sw",
		telemetry.ThrottleCauseHWSlowdown:         "hw",
		telemetry.ThrottleCauseSyncBoost:          "sw",
		telemetry.ThrottleCauseSWThermal:          "thermal sw",
		telemetry.ThrottleCauseHWThermal:          "thermal hw",
		telemetry.ThrottleCauseHWPowerBrake:       "power hw",
		telemetry.ThrottleCauseApplicationsClocks: "sw",
		telemetry.ThrottleCauseDisplayClocks:      "sw",
		telemetry.ThrottleCauseUnknown:            "hw",
	} {
		d.physics.now.held = setOf(cause)
		var x telemetry.Throttle
		d.throttle(&x)
		var got []string
		for b, v := range x.Active {
			if number(t, v) == 1 {
				got = append(got, telemetry.ThrottleBucket(b).String())
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v is in %v, want %s", cause, got, want)
		}
		for c, v := range x.Reason {
			if on := number(t, v) == 1; on != (telemetry.ThrottleCause(c) == cause) {
				t.Errorf("with %v, reason %v is %v", cause, telemetry.ThrottleCause(c), on)
			}
		}
	}
}
