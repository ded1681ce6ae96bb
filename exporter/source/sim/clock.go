package sim

import (
	"math"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func (d *device) clock(out *telemetry.Clock) {
	speed := d.speed()
	for i, c := range d.board.clocks {
		most := float64(c.most)
		now := most
		switch {
		case d.physics.now.busy == 0:
			now = float64(c.rest)
		case i != int(telemetry.ClockTypeMemory) && speed < 1:
			// The clocks of NVIDIA's boards go in steps of 15 MHz: the least hold costs one.
			now = max(float64(c.rest), 15*math.Floor(most*speed/15))
		}
		tell(&out.Frequency[i], most != 0, now*mega)
		tell(&out.Limit[i], most != 0, most*mega)
		out.Application[i].Fail(metric.Unsupported)
	}
	if graphics := d.board.application; graphics != 0 {
		out.Application[telemetry.ClockTypeGraphics].Set(float64(graphics) * mega)
		out.Application[telemetry.ClockTypeMemory].Set(float64(d.board.clocks[telemetry.ClockTypeMemory].most) * mega)
	}
}

// speedOfPower is the exponent that makes the speed of the clocks of the share of power they have.
// Power goes with frequency times voltage squared, and voltage follows frequency, but only part of
// the power is the chip's.
const speedOfPower = 0.4

// speed is the share of their frequency at which the clocks run.
func (d *device) speed() float64 {
	n := &d.physics.now
	if n.held == 0 {
		return 1
	}
	return math.Pow(float64(n.power)/float64(n.demand), speedOfPower)
}
