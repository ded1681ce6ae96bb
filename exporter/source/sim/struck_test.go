package sim

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// working is a time at which the first board of an H100 node of seed 1 trains, warm, and goes on for
// ten minutes and more.
const working = 30 * time.Minute

// suffering is what a board tells of its faults.
type suffering struct {
	xids, uncorrected, rows, celsius, margin, heldByHeat, busy, watts float64
	action                                                            telemetry.RecoveryAction
	pending                                                           bool
	last                                                              time.Duration // XID, since noon
}

func suffer(t *testing.T, d source.Device) (s suffering) {
	t.Helper()
	x := read(t, d)
	for i, v := range x.XID.Events {
		if action := telemetry.XIDAction(i); action != telemetry.XIDActionApplication {
			s.xids += number(t, v)
		}
	}
	for _, k := range x.XID.LastSeenTimestamp {
		at := time.Duration(number(t, k.Value)) * time.Second
		s.last = max(s.last, at-time.Duration(noon.Unix())*time.Second)
	}
	s.uncorrected = number(t, x.ECC.Errors[telemetry.ECCErrorTypeUncorrected])
	s.rows = number(t, x.Repair.RowRemapRows[telemetry.ECCErrorTypeUncorrected])
	s.celsius = number(t, x.Thermal.Temperature[telemetry.TemperatureSensorCore])
	s.margin = number(t, x.Thermal.TemperatureMargin)
	s.heldByHeat = number(t, x.Throttle.Time[telemetry.ThrottleCauseHWThermal])
	s.busy = number(t, x.Utilization.BusyTime)
	s.watts = number(t, x.Power.Draw)
	s.pending = number(t, x.Repair.RowRemapPending) == 1
	for i, v := range x.Repair.RecoveryAction {
		if number(t, v) == 1 {
			s.action = telemetry.RecoveryAction(i)
		}
	}
	if wrong := accounted(&x.ECC); wrong != nil {
		t.Errorf("%s", strings.Join(wrong, "; "))
	}
	dev := d.(*device)
	limit := number(t, x.Power.Limit[telemetry.PowerLimitTypeEnforced])
	if wrong := throttled(dev, x, s.watts, limit); wrong != nil {
		t.Errorf("%s", strings.Join(wrong, "; "))
	}
	return s
}

// Each fault of a device does to the first board what it is named for while it is asked for, and not
// before and not after; the other boards do not feel it.
func TestTroublesOfDevices(t *testing.T) {
	const reset = telemetry.RecoveryActionReset
	for name, holds := range map[string]func(well, during, later, after suffering) bool{
		"gpu-xid": func(well, during, later, after suffering) bool {
			return during.xids == well.xids+1 && during.action == reset && later.xids == well.xids+6 && after.action != reset &&
				during.last == working && later.last == working+5*time.Minute &&
				after.xids == later.xids && after.uncorrected == well.uncorrected
		},
		"gpu-ecc": func(well, during, later, after suffering) bool {
			return during.uncorrected == well.uncorrected+1 && during.xids == well.xids+2 && during.rows == well.rows+1 &&
				during.pending && during.action == reset && later.uncorrected == well.uncorrected+6 &&
				!after.pending && after.action != reset && after.uncorrected == later.uncorrected
		},
		"gpu-hot": func(well, _, later, after suffering) bool {
			return later.celsius > 86 && later.celsius < 92 && later.margin <= 0 && later.heldByHeat > 120 && later.watts < 500 && later.xids == well.xids &&
				after.celsius < well.celsius+3 && after.heldByHeat-later.heldByHeat < 60
		},
		"gpu-idle": func(well, _, later, after suffering) bool {
			return later.busy-well.busy < 2 && later.celsius < 40 && later.watts < 90 && after.busy > later.busy+30
		},
	} {
		ends := working + 6*time.Minute
		c, devices := start(t, fmt.Sprintf("h100x8,%s@%v+6m", name, working), 1)
		_, others := start(t, "h100x8", 1)
		var seen [4]suffering
		for i, at := range []time.Duration{working - time.Second, working + time.Second, ends - time.Second, ends + 3*time.Minute} {
			c.moveTo(at)
			seen[i] = suffer(t, devices[0])
		}
		if !holds(seen[0], seen[1], seen[2], seen[3]) {
			t.Errorf("%s: before, at the beginning, at the end and after\n%+v", name, seen)
		}
		hit := 1
		if name == "gpu-idle" {
			hit = jobSize
		}
		for i := hit; i < len(devices); i++ {
			others[i].(*device).now = c.now
			if got, want := read(t, devices[i]), read(t, others[i]); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: board %d feels it", name, i)
			}
		}
	}
}

// Which boards a fault hits: the first that can have it, and idleness all boards of the first job.
func TestStrikes(t *testing.T) {
	const xid, ecc, hot, idle = Faults(1 << gpuXID), Faults(1 << gpuECC), Faults(1 << gpuHot), Faults(1 << gpuIdle)
	for node, want := range map[string][]Faults{
		"h100x5":                       {xid | ecc | hot | idle, idle, idle, idle, 0},
		"mi300xx1,rtx4090x1,h100x1":    {ecc | hot | idle, xid, 0},
		"rtx4090x2,gaudi3x1,b200x1":    {xid | hot | idle, idle, ecc, 0},
		"h100migx2,h100x1,engine-slow": {xid | ecc | hot | idle, idle, 0},
	} {
		slots, _, err := parse(node)
		if got := strikes(slots); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %b, %v; want %b", node, got, err, want)
		}
	}
}

// What a board told while it was asked for faults is told by whoever opens the node later too, and
// counters are the integrals of what was seen every second.
func TestTroublesAreRemembered(t *testing.T) {
	c := &clock{t: noon}
	var now Faults
	s, err := New(Config{Node: "h100x4", Now: c.now, Faults: func() Faults { return now }, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	d := list(t, s)[0]
	var joules, busy, celsius float64
	asked := map[int64]Faults{1000: 1 << gpuHot, 1500: 1<<gpuIdle | 1<<gpuXID, 2000: 0, 2500: 1 << gpuECC, 2600: 0,
		cycleTicks - 60: 1<<gpuIdle | 1<<gpuHot, cycleTicks + 1200: 0, cycleTicks + 2000: 1 << gpuHot}
	for tick := range int64(cycleTicks + 3000) {
		if f, changes := asked[tick]; changes {
			now = f
		}
		c.moveTo(time.Duration(tick) * time.Second)
		x := read(t, d)
		if got := number(t, x.Power.Energy); math.Abs(got-joules) > 1e-6*joules {
			t.Fatalf("at tick %d %v J, the integral is %v", tick, got, joules)
		}
		if got := number(t, x.Utilization.BusyTime); math.Abs(got-busy) > 1e-6*busy {
			t.Fatalf("at tick %d busy for %v s, the integral is %v", tick, got, busy)
		}
		now := number(t, x.Thermal.Temperature[telemetry.TemperatureSensorCore])
		if math.Abs(now-celsius) > 3 && tick > 0 {
			t.Errorf("at tick %d from %v to %v degrees in a second", tick, celsius, now)
		}
		celsius = now
		joules += number(t, x.Power.Draw)
		busy += number(t, x.Utilization.Utilization)
		if tick%4321 == 0 {
			if again := read(t, list(t, s)[0]); !reflect.DeepEqual(again, x) {
				t.Fatalf("at tick %d who opens it again sees\n%+v\nnot\n%+v", tick, again, x)
			}
		}
	}
	for _, tick := range []time.Duration{3*cycleTicks + 100, 9 * cycleTicks} { // nobody looked meanwhile
		c.moveTo(tick * time.Second)
		x := read(t, d)
		if again := read(t, list(t, s)[0]); !reflect.DeepEqual(again, x) {
			t.Errorf("at tick %d who opens it again sees\n%+v\nnot\n%+v", tick, again, x)
		}
		now = 0
	}
	if n := suffer(t, d); n.uncorrected < 2 || n.heldByHeat < 300 {
		t.Errorf("%+v; want errors and heat", n)
	}
}

// An engine whose job is idle is up, and answers hardly anything, for which its board works a little.
func TestIdleEngine(t *testing.T) {
	c, devices := start(t, "l40sx1,gpu-idle", 1)
	c.moveTo(working)
	if got := number(t, read(t, devices[0]).Utilization.Utilization); got != 0.01 {
		t.Errorf("its board works %v of the time", got)
	}
	well := watch(t, "l40sx1")
	if x := watch(t, "l40sx1,gpu-idle@10m+15m"); x.up == 0 || x.ended > well.ended/20 || x.ended == 0 {
		t.Errorf("%+v; well %+v", x, well)
	}
	if x := watch(t, "h100x8,gpu-idle@10m+15m"); x != watch(t, "h100x8") {
		t.Error("the engine of another job is idle too")
	}
}
