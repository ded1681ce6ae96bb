package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// allModels is a row of four boards of each model, so that each has a place where cooling fails.
func allModels() string { return strings.Join(modelIDs(), "x4,") + "x4" }

// inBetween are boards of allModels that do nothing the first and the last of their row do not.
func inBetween(i int) bool { return i%jobSize != 0 && i%jobSize != jobSize-1 }

// reference is what a patient observer adds up of gauges, scraping each tick.
type reference struct {
	energy, busy float64
	held         [telemetry.ThrottleCauseUnknown + 1]float64
	below        [2]float64 // by floor of the clocks
	draws        []float64  // watts
}

// Over more than an hour of scrapes at any moment, the counters are the integrals of the gauges
// that another reader of the same node sees every second.
func TestCountersAreIntegrals(t *testing.T) {
	slow, scraped := start(t, allModels(), 3)
	fast, watched := start(t, allModels(), 3)
	for i := range scraped {
		if inBetween(i) {
			continue
		}
		var past reference
		b := scraped[i].(*device).board
		floors := [...]float64{applicationFloor: float64(b.application) * mega, baseFloor: float64(b.base) * mega}
		if b.application == 0 {
			floors[applicationFloor] = math.Inf(1) // as fast as it can
		}
		var current *telemetry.Device
		random := rand.New(rand.NewPCG(1, uint64(i)))
		next, tick := time.Duration(0), time.Duration(-1)
		for next < 65*time.Minute {
			next += time.Duration(random.Int64N(int64(40 * time.Second)))
			for tick+1 <= next/time.Second {
				if current != nil {
					past.add(t, current, floors, 1)
				}
				tick++
				fast.moveTo(tick * time.Second)
				current = read(t, watched[i])
			}
			want := past
			want.add(t, current, floors, (next - tick*time.Second).Seconds())
			slow.moveTo(next)
			got := read(t, scraped[i])
			where := fmt.Sprintf("%s after %v", scraped[i].Identity().Model, next)
			near(t, where+": energy", number(t, got.Power.Energy), want.energy)
			if busy, ok := got.Utilization.BusyTime.Get(); ok {
				near(t, where+": busy time", busy, want.busy)
			}
			for c, v := range got.Throttle.Time {
				if s, ok := v.Get(); ok {
					near(t, where+": throttle time "+telemetry.ThrottleCause(c).String(), s, want.held[c])
				}
			}
			if s, ok := got.Throttle.PolicyTime[telemetry.ThrottlePolicyThermal].Get(); ok {
				near(t, where+": policy time thermal", s, want.held[telemetry.ThrottleCauseSWThermal])
			}
			for floor, policy := range [...]telemetry.ThrottlePolicy{
				applicationFloor: telemetry.ThrottlePolicyApplicationClocks, baseFloor: telemetry.ThrottlePolicyBaseClocks,
			} {
				if s, ok := got.Throttle.PolicyTime[policy].Get(); ok {
					near(t, where+": policy time "+policy.String(), s, want.below[floor])
				}
			}
			if peak, ok := got.Power.Peak.Get(); ok {
				near(t, where+": peak", peak, slices.Max(want.draws[max(0, len(want.draws)-61):]))
			}
			if t.Failed() {
				return
			}
		}
		if past.energy == 0 || past.busy == 0 && len(b.parts) == 0 {
			t.Errorf("board %d did nothing", i)
		}
	}
}

func (r *reference) add(t *testing.T, x *telemetry.Device, floors [2]float64, seconds float64) {
	r.draws = append(r.draws, number(t, x.Power.Draw))
	r.energy += number(t, x.Power.Draw) * seconds
	busy, _ := x.Utilization.Utilization.Get()
	r.busy += busy * seconds
	held := false
	for c, v := range x.Throttle.Reason {
		on, _ := v.Get()
		r.held[c] += on * seconds
		held = held || on == 1
	}
	for i, floor := range floors {
		if hertz, ok := x.Clock.Frequency[telemetry.ClockTypeGraphics].Get(); ok && held && hertz < floor {
			r.below[i] += seconds
		}
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*max(1, want) {
		t.Errorf("%s is %v, the integral is %v", what, got, want)
	}
}

// What must hold whenever anyone looks, for every model, over two cycles.
func TestEveryInstantIsPossible(t *testing.T) {
	c, devices := start(t, allModels(), 3)
	for i, d := range devices {
		if inBetween(i) {
			continue
		}
		dev := d.(*device)
		random := rand.New(rand.NewPCG(2, uint64(i)))
		counters := map[series]float64{}
		met := causes(0)
		for at := time.Duration(0); at < 2*cycleTicks*time.Second; {
			pace := 20 * time.Second // short enough to meet the brake
			if at > time.Hour {
				pace = 2 * time.Minute
			}
			at += time.Duration(random.Int64N(int64(pace)))
			c.moveTo(at)
			x := read(t, d)
			fault := possible(dev, x, counters)
			if fault != "" {
				t.Errorf("%s after %v: %s", d.Identity().Model, at, fault)
				break
			}
			met |= dev.physics.now.held
		}
		full := !dev.physics.plan.serving && len(dev.physics.duties) == 1 // of those that are split some partition always serves
		if full && met&powerCap == 0 {
			t.Errorf("%s %d never met its power limit", d.Identity().Model, i)
		}
		if full && i%jobSize == jobSize-1 && met&tooHot == 0 {
			t.Errorf("%s %d never got too hot", d.Identity().Model, i)
		}
		if met&powerBrake == 0 && i == 0 {
			t.Errorf("%s %d never braked", d.Identity().Model, i)
		}
	}
}

// possible says what is wrong with a reading, if anything is.
func possible(d *device, x *telemetry.Device, counters map[series]float64) string {
	get := func(v metric.Value) float64 { n, _ := v.Get(); return n }
	var wrong []string
	want := func(ok bool, format string, a ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, a...))
		}
	}
	everyNumber(x, func(s series, n float64) {
		mayBeBelow := s.desc.Name == "gpu.temperature.margin.limit"
		if n < 0 && !mayBeBelow || math.IsInf(n, 0) || math.IsNaN(n) || s.desc.Unit == "1" && n > 1 {
			want(false, "%v is %v", s, n)
		}
		if s.desc.Kind == metric.KindCounter {
			if n < counters[s] {
				want(false, "%v fell from %v to %v", s, counters[s], n)
			}
			counters[s] = n
		}
	})

	m := &x.Memory
	want(get(m.Usage)+get(m.Free)+get(m.Reserved) == get(m.Limit), "memory %v + %v + %v is not %v",
		get(m.Usage), get(m.Free), get(m.Reserved), get(m.Limit))
	want(get(x.Utilization.Utilization) == 0 || get(m.Usage) > 0 || d.physics.now.busy < 5, "it works without memory")

	draw, limit := get(x.Power.Draw), get(x.Power.Limit[telemetry.PowerLimitTypeEnforced])
	want(limit > 0 && draw >= float64(d.board.idle) && draw <= limit, "it draws %v W of %v", draw, limit)

	h := d.board.heat
	core := get(x.Thermal.Temperature[telemetry.TemperatureSensorCore])
	want(core >= inlet && core < float64(h.slowdown), "the chip has %v degrees", core)
	if margin, ok := x.Thermal.TemperatureMargin.Get(); ok {
		want(margin == float64(h.coreMax)-core, "margin %v at %v degrees", margin, core)
		slowdown := get(x.Thermal.TemperatureMarginLimit[telemetry.TemperatureLimitTypeSlowdown])
		want(margin-slowdown == float64(h.slowdown)-core, "margin %v, slowdown at %v, %v degrees", margin, slowdown, core)
	}
	if peak, ok := x.Power.Peak.Get(); ok {
		want(peak >= draw && peak <= limit, "a peak of %v W, now %v of %v", peak, draw, limit)
		want(get(x.Power.Instant[telemetry.PowerDomainDevice]) == draw, "an instant of %v W, a mean of %v", get(x.Power.Instant[0]), draw)
	}
	if slowdown, ok := x.Thermal.TemperatureLimit[telemetry.TemperatureLimitTypeSlowdown].Get(); ok {
		want(slowdown == float64(h.slowdown), "limit %v is not %v", slowdown, h.slowdown)
	}

	wrong = append(wrong, filled(&x.Profiling)...)
	wrong = append(wrong, accounted(&x.ECC)...)
	wrong = append(wrong, divided(d, x)...)
	dram, profiled := x.Profiling.DramActive.Get()
	if controller, ok := x.Utilization.MemoryControllerUtilization.Get(); ok && profiled {
		want(dram <= controller+percent, "memory moves data for %v of the time and is busy for %v", dram, controller)
	}

	for i := range x.ECC.Errors {
		if life, ok := x.ECC.LifetimeErrors[i].Get(); ok {
			want(life >= get(x.ECC.Errors[i]), "%v errors in its life, %v since the driver", life, get(x.ECC.Errors[i]))
		}
	}
	wrong = append(wrong, throttled(d, x, draw, limit)...)
	return strings.Join(wrong, "; ")
}

// throttled says what is wrong between demand, power, causes, buckets and clocks.
func throttled(d *device, x *telemetry.Device, draw, limit float64) (wrong []string) {
	n := &d.physics.now
	demand := float64(n.demand) / 1000
	if over := n.held&powerCap != 0; over != (demand > limit) {
		wrong = append(wrong, fmt.Sprintf("demand %v W, limit %v, power cap %v", demand, limit, over))
	}
	if held := n.held != 0; held != (draw < demand) {
		wrong = append(wrong, fmt.Sprintf("demand %v W, draw %v, held %v", demand, draw, held))
	}
	if n.held&tooHot != 0 && n.core < float64(d.board.heat.coreMax-2) {
		wrong = append(wrong, fmt.Sprintf("held for heat at %v degrees", n.core))
	}
	on := func(list ...telemetry.ThrottleCause) bool {
		for _, c := range list {
			if v, _ := x.Throttle.Reason[c].Get(); v == 1 {
				return true
			}
		}
		return false
	}
	if d.board.causes {
		// As spec/attributes.yaml says of gpu.throttle.bucket, word for word.
		for b, want := range [...]bool{
			telemetry.ThrottleBucketPower:   on(telemetry.ThrottleCauseSWPowerCap, telemetry.ThrottleCauseHWPowerBrake),
			telemetry.ThrottleBucketThermal: on(telemetry.ThrottleCauseSWThermal, telemetry.ThrottleCauseHWThermal),
			telemetry.ThrottleBucketSW: on(telemetry.ThrottleCauseSWPowerCap, telemetry.ThrottleCauseSyncBoost, telemetry.ThrottleCauseSWThermal,
				telemetry.ThrottleCauseApplicationsClocks, telemetry.ThrottleCauseDisplayClocks),
			telemetry.ThrottleBucketHW: on(telemetry.ThrottleCauseHWSlowdown, telemetry.ThrottleCauseHWThermal,
				telemetry.ThrottleCauseHWPowerBrake, telemetry.ThrottleCauseUnknown),
		} {
			if got, _ := x.Throttle.Active[b].Get(); (got == 1) != want {
				wrong = append(wrong, fmt.Sprintf("bucket %v is %v, its causes %v", telemetry.ThrottleBucket(b), got, want))
			}
		}
	}
	speed, has := x.Clock.Frequency[telemetry.ClockTypeGraphics].Get()
	most, _ := x.Clock.Limit[telemetry.ClockTypeGraphics].Get()
	if has && (n.held != 0 && speed >= most || n.held == 0 && n.busy > 0 && speed != most || n.busy == 0 && speed >= most/2) {
		wrong = append(wrong, fmt.Sprintf("%v Hz of %v, held %v, busy %d %%", speed, most, n.held, n.busy))
	}
	return wrong
}

// Temperature comes after power and settles where the power leads it.
func TestTemperatureFollowsPower(t *testing.T) {
	for _, id := range modelIDs() {
		c, devices := start(t, id+"x1", 3)
		d := devices[0].(*device)
		j := d.physics.plan.jobs[0]
		at := func(tick int64) (watts, celsius float64) {
			c.moveTo(time.Duration(tick) * time.Second)
			x := read(t, d)
			return number(t, x.Power.Draw), number(t, x.Thermal.Temperature[telemetry.TemperatureSensorCore])
		}
		_, cold := at(j.from - 1)
		loaded := j.from + j.ramp + 1
		watts, lagging := at(loaded)
		later, warm := at(loaded + 200)
		full, limit := float64(d.board.heat.full), float64(d.board.enforced())
		settled := inlet + (full-inlet)*later/limit
		if watts < 0.4*limit || later < 0.45*limit || lagging > (cold+settled)/2+1 || math.Abs(warm-settled) > 4 || cold > settled-15 {
			t.Errorf("%s: %v degrees when idle, %v at %v W, later %v at %v W; full load is %v", id, cold, lagging, watts, warm, later, full)
		}
		// Nothing jumps: a degree or two a second is the most, the board's rest between cycles included.
		last := warm
		for tick := loaded + 201; tick < cycleTicks+300; tick++ {
			if tick == 4000 { // an hour of jobs will do; then the end of the cycle
				tick = cycleTicks - 300
				_, last = at(tick)
			}
			_, now := at(tick)
			if math.Abs(now-last) > 2 {
				t.Errorf("%s: from %v to %v degrees in a second, at tick %d", id, last, now, tick)
			}
			last = now
		}
	}
}
