package sim

import (
	"math"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

const (
	mega    = 1e6
	milli   = 1e-3
	percent = 1e-2
)

// tell records a number, or that the board does not have it.
func tell(v *metric.Value, has bool, n float64) {
	if has {
		v.Set(n)
	} else {
		v.Fail(metric.Unsupported)
	}
}

func (d *device) power(out *telemetry.Power) {
	out.Draw.Set(float64(d.physics.now.power) * milli)
	out.Energy.Set(d.physics.joules())
	for i, watts := range d.board.limits {
		tell(&out.Limit[i], watts != 0, float64(watts))
	}
}

// thermal tells whole degrees, as drivers do, so that what is told adds up.
func (d *device) thermal(out *telemetry.Thermal) {
	h, core := &d.board.heat, math.Floor(d.physics.now.core)
	out.Temperature[telemetry.TemperatureSensorCore].Set(core)
	tell(&out.Temperature[telemetry.TemperatureSensorMemory], h.fullMemory != 0, math.Floor(d.physics.now.memory))
	out.Temperature[telemetry.TemperatureSensorHotspot].Fail(metric.Unsupported) // the chip's is its hottest place's here
	tell(&out.TemperatureMargin, d.board.margin, float64(h.slowdown)-core)
	for i, celsius := range d.board.told {
		tell(&out.TemperatureLimit[i], celsius != 0, float64(celsius))
	}
}

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
	}
}

// speed is the share of their frequency at which the clocks run. Power goes with frequency times
// voltage squared, and voltage follows frequency, but only part of the power is the chip's.
func (d *device) speed() float64 {
	n := &d.physics.now
	if n.held == 0 {
		return 1
	}
	return math.Pow(float64(n.power)/float64(n.demand), 0.4)
}

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
	for i := range out.Active {
		out.Active[i].Fail(metric.Unsupported)
	}
	for _, b := range d.board.buckets {
		out.Active[b].SetBool(held&bucketCauses[b] != 0)
	}
}

func (d *device) utilization(out *telemetry.Utilization) {
	busy := float64(d.physics.now.busy)
	out.Utilization.Set(busy * percent)
	out.BusyTime.Set(d.physics.busySeconds())
	// Matrix products keep the memory busy for less than half of the time.
	tell(&out.MemoryControllerUtilization, d.board.bus, math.Floor(busy*0.42)*percent)
	for i, has := range d.board.engines {
		share := 0.0 // no job here encodes, or computes optical flow
		if i == int(telemetry.MediaEngineDecoder) && d.physics.plan.serving {
			share = math.Floor(busy * 0.2) // requests come with pictures
		}
		tell(&out.MediaUtilization[i], has, share*percent)
	}
}

// memory is taken while a job loads, and kept until it ends.
func (d *device) memory(out *telemetry.Memory) {
	const page = 2 << 20
	b, used := d.board, int64(0)
	if j := d.physics.now.job; j != nil {
		whole := (b.memory - b.reserved) / 1000 * d.physics.plan.footprint
		used = whole / j.ramp * min(j.ramp, d.physics.tick-j.from) / page * page
	}
	out.Limit.Set(float64(b.memory))
	out.Usage.Set(float64(used))
	out.Free.Set(float64(b.memory - b.reserved - used))
	tell(&out.Reserved, b.reserved != 0, float64(b.reserved))
}

func (d *device) ecc(out *telemetry.ECC) {
	for i, n := range d.faults.memoryErrors(d.physics.tick) {
		tell(&out.Errors[i], d.board.ecc, float64(n))
		tell(&out.LifetimeErrors[i], d.board.eccLife, float64(d.faults.before[i]+n))
	}
	for i := range out.Enabled {
		tell(&out.Enabled[i], d.board.eccMode, 1)
	}
}

// rowRemapping is the XID of a row being replaced after an uncorrected error.
const rowRemapping = 63

// repair tells of rows replaced: one with each XID that says so. Spare rows never run out here.
func (d *device) repair(out *telemetry.Repair) {
	replaced := int64(0)
	for i, f := range faultSorts {
		if f.xid == rowRemapping {
			replaced += d.faults.count(i, d.physics.tick)
		}
	}
	tell(&out.RowRemapRows[telemetry.ECCErrorTypeCorrected], d.board.remap, 0)
	tell(&out.RowRemapRows[telemetry.ECCErrorTypeUncorrected], d.board.remap, float64(replaced))
	tell(&out.RowRemapPending, d.board.remap, 0)
	tell(&out.RowRemapFailure, d.board.remap, 0)
}

// xid tells the codes seen so far, in a slice of its own: what is read is kept by others.
func (d *device) xid(out *telemetry.XID) {
	var seen []metric.Keyed
	for i, labels := range d.faults.labels {
		n := d.faults.count(i, d.physics.tick)
		if labels == nil || n == 0 {
			continue
		}
		if seen == nil {
			seen = make([]metric.Keyed, 0, len(faultSorts))
		}
		k := metric.Keyed{Labels: labels}
		k.Value.Set(float64(n))
		seen = append(seen, k)
	}
	out.Errors = seen
}
