package sim

import (
	"math"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Fans stand still on a cool chip, turn faster the warmer it is, and all alike.
func TestFansFollowHeat(t *testing.T) {
	c, devices := start(t, "rtx4090x4", 3)
	still, fastest := false, 0.0
	for _, d := range devices {
		speeds := map[float64]float64{} // by temperature
		for at := time.Duration(0); at < 3*time.Hour; at += 13 * time.Second {
			c.moveTo(at)
			x := read(t, d)
			core := number(t, x.Thermal.Temperature[telemetry.TemperatureSensorCore])
			speed := number(t, x.Fan.Speed[0].Value)
			if len(x.Fan.Speed) != 2 || number(t, x.Fan.Speed[1].Value) != speed || len(x.Fan.RotationFrequency) != 1 {
				t.Fatalf("fans at %v, turning at %v", x.Fan.Speed, x.Fan.RotationFrequency)
			}
			if turns := number(t, x.Fan.RotationFrequency[0].Value); (turns > 0) != (speed > 0) || turns > fastestTurn {
				t.Errorf("a fan told to run at %v turns %v times a second", speed, turns)
			}
			speeds[core] = speed
			still = still || speed == 0
			fastest = max(fastest, speed)
		}
		for core, speed := range speeds {
			if warmer, ok := speeds[core+1]; ok && warmer < speed {
				t.Errorf("%v at %v degrees, %v one degree above", speed, core, warmer)
			}
		}
	}
	if !still || fastest < 0.95 {
		t.Errorf("fans stood still: %v; at most they ran at %v", still, fastest)
	}
}

// Boards with an encoder encode for those they serve; without sessions there is no rate of frames.
func TestEncoderSessions(t *testing.T) {
	for node, films := range map[string]bool{"l40sx1": true, "rtx4090x1": false, "rtx4090x5": true, "h100x5": false} {
		c, devices := start(t, node, 1)
		_, x := restAndWork(t, c, devices[len(devices)-1])
		n := number(t, x.Encoder.Sessions)
		rate, told := x.Encoder.FrameRate.Get()
		latency, _ := x.Encoder.Latency.Get()
		busy := number(t, x.Utilization.MediaUtilization[telemetry.MediaEngineEncoder])
		if (n > 0) != films || told != films || (busy > 0) != films {
			t.Errorf("%s: %v sessions, %v frames a second, an encoder busy for %v; want films: %v", node, n, rate, busy, films)
		}
		if films && math.Abs(rate*latency-1) > 1e-9 {
			t.Errorf("%s: %v frames a second of each session take %v s each", node, rate, latency)
		}
		if !films && x.Encoder.FrameRate.Why() != metric.NoData {
			t.Errorf("%s: no frames because of %q", node, x.Encoder.FrameRate.Why().Text)
		}
	}
}
