package health

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/source/sourcetest"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// board is a device that the test changes.
type board struct{ telemetry.Device }

// healthy is a board at work that tells everything, and of which nothing can be said. Its counters
// are not at 0: it had errors days ago.
func healthy() *board {
	b := new(board)
	b.Presence.Up.Set(1)
	b.Utilization.Utilization.Set(0.9)
	b.Links = []telemetry.Part[telemetry.Link]{link(telemetry.LinkTypePCIE, 0), link(telemetry.LinkTypeNvlink, 0), link(telemetry.LinkTypeNvlink, 1)}
	for _, rule := range telemetry.HealthRules {
		for _, from := range rule.From {
			old := 0.
			if from.Least > 0 && !from.Fresh {
				old = 70
			}
			for i := range b.Links {
				valueOf(&from, b, i).Set(old)
			}
		}
	}
	b.width(16)
	b.Links[0].Read.Links.WidthLimit.Set(16)
	b.Repair.RecoveryAction[telemetry.RecoveryActionNone].Set(1)
	return b
}

func link(kind telemetry.LinkType, id int64) telemetry.Part[telemetry.Link] {
	return telemetry.Part[telemetry.Link]{Labels: telemetry.LinkAttributes{LinkType: kind, LinkID: id}.Labels()}
}

func (b *board) width(lanes float64) { b.Links[0].Read.Links.Width.Set(lanes) }

func add(v *metric.Value, more float64) {
	n, _ := v.Get()
	v.Set(n + more)
}

// rig shows a judge one board.
type rig struct {
	*Judge
	at    time.Time
	board *board
}

func newRig(b *board) *rig { return &rig{New(noon), noon, b} }

// look takes a picture after a time.
func (r *rig) look(after time.Duration) telemetry.Health {
	r.at = r.at.Add(after)
	return r.picture(false)
}

func (r *rig) picture(partial bool) telemetry.Health {
	d := snapshot.Device{Identity: &telemetry.Identity{UUID: "GPU-0"}, Read: r.board.Device}
	s := &snapshot.Snapshot{Taken: r.at, Partial: partial, Devices: []snapshot.Device{d}}
	r.Stage(s)
	return s.Devices[0].Read.Health
}

// watch takes a picture every half minute for that long, the last at its end.
func (r *rig) watch(long time.Duration) (out telemetry.Health) {
	const every = 30 * time.Second
	for ; long > every; long -= every {
		r.look(every)
	}
	return r.look(long)
}

// want compares with what each term is to take; those not named are to be 0.
func want(t *testing.T, what string, got telemetry.Health, taken map[telemetry.HealthTerm]float64) {
	t.Helper()
	sum := 0.
	for i, v := range got.Penalty {
		term := telemetry.HealthTerm(i)
		n, told := v.Get()
		if !told || n != taken[term] {
			t.Errorf("%s: %s takes %v, %v; want %v", what, term, n, v.Why(), taken[term])
		}
		sum += taken[term]
	}
	if n, told := got.Score.Get(); !told || math.Abs(n-max(0, 1-sum)) > 1e-9 {
		t.Errorf("%s: score %v, want %v", what, n, max(0, 1-sum))
	}
}

func TestSpecIsRead(t *testing.T) {
	s := &snapshot.Snapshot{Taken: noon, Devices: []snapshot.Device{{Identity: &telemetry.Identity{UUID: "GPU-0"}}}}
	New(noon).Stage(s)
	sourcetest.SpecIsRead(t, "health", telemetry.DeviceFamilies, &s.Devices[0].Read)
}

// Every term in turn: it is not there and the score is 1, it is there and takes what it takes, and it
// is gone when its cause is, or after its window.
func TestTerms(t *testing.T) {
	const hour = time.Hour
	type change func(*board)
	again := func(*board) {}
	for name, c := range map[string]struct {
		term   telemetry.HealthTerm
		comes  change
		goes   change        // nil: nobody does anything, and the window passes
		window time.Duration // 0: it holds now or not
		takes  float64
	}{
		"the driver wants a reset": {telemetry.HealthTermRecoveryAction,
			func(b *board) { b.Repair.RecoveryAction[telemetry.RecoveryActionReset].Set(1) },
			func(b *board) { b.Repair.RecoveryAction[telemetry.RecoveryActionReset].Set(0) }, 0, 0.6},
		"the driver wants something new": {telemetry.HealthTermRecoveryAction,
			func(b *board) { b.Repair.RecoveryAction[telemetry.RecoveryActionUnknown].Set(1) },
			func(b *board) { b.Repair.RecoveryAction[telemetry.RecoveryActionUnknown].Set(0) }, 0, 0.6},
		"an XID asks for a drain": {telemetry.HealthTermXIDRecovery,
			func(b *board) { add(&b.XID.Events[telemetry.XIDActionDrain], 1) }, nil, hour, 0.6},
		"an XID asks for a look": {telemetry.HealthTermXIDInspect,
			func(b *board) { add(&b.XID.Events[telemetry.XIDActionInspect], 1) }, nil, hour, 0.3},
		"an ECC error": {telemetry.HealthTermECCUncorrected,
			func(b *board) { add(&b.ECC.Errors[telemetry.ECCErrorTypeUncorrected], 1) }, nil, hour, 0.4},
		"a row could not be replaced": {telemetry.HealthTermRemapFailure,
			func(b *board) { b.Repair.RowRemapFailure.Set(1) }, func(b *board) { b.Repair.RowRemapFailure.Set(0) }, 0, 0.6},
		"a row waits": {telemetry.HealthTermRemapPending,
			func(b *board) { b.Repair.RowRemapPending.Set(1) }, func(b *board) { b.Repair.RowRemapPending.Set(0) }, 0, 0.3},
		"a page waits": {telemetry.HealthTermRemapPending,
			func(b *board) { b.Repair.RetiredPagesPending.Set(1) }, func(b *board) { b.Repair.RetiredPagesPending.Set(0) }, 0, 0.3},
		"it is too hot": {telemetry.HealthTermThermalSlowdown,
			func(b *board) { add(&b.Throttle.Time[telemetry.ThrottleCauseHWThermal], 10) }, nil, 5 * time.Minute, 0.2},
		"it is too hot for an old driver": {telemetry.HealthTermThermalSlowdown,
			func(b *board) { add(&b.Throttle.PolicyTime[telemetry.ThrottlePolicyThermal], 25) }, nil, 5 * time.Minute, 0.2},
		"it runs on eight lanes": {telemetry.HealthTermPCIEWidth,
			func(b *board) { b.width(8) }, func(b *board) { b.width(16) }, 0, 0.15},
		"a link was trained anew": {telemetry.HealthTermNvlinkErrors,
			func(b *board) { add(&b.Links[2].Read.Links.Errors[telemetry.LinkErrorTypeRecovery], 1) }, nil, hour, 0.1},
		"a link is bad": {telemetry.HealthTermNvlinkErrors,
			func(b *board) { add(&b.Links[1].Read.Links.Errors[telemetry.LinkErrorTypeCrc], 100) }, nil, hour, 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(healthy())
			r.look(0)
			want(t, "before", r.watch(hour), nil)
			c.comes(r.board)
			there := map[telemetry.HealthTerm]float64{c.term: c.takes}
			want(t, "when it is seen", r.look(time.Second), there)
			if c.goes == nil {
				want(t, "at the end of its window", r.watch(c.window-time.Second), there)
				c.goes = again
			}
			c.goes(r.board)
			want(t, "after", r.look(time.Second), nil)
		})
	}
}

// What is no illness takes nothing.
func TestNoTerms(t *testing.T) {
	for name, change := range map[string]func(*board){
		"corrected errors":         func(b *board) { add(&b.ECC.Errors[telemetry.ECCErrorTypeCorrected], 1000) },
		"an application's XID":     func(b *board) { add(&b.XID.Events[telemetry.XIDActionApplication], 5) },
		"a power cap":              func(b *board) { add(&b.Throttle.Time[telemetry.ThrottleCauseSWPowerCap], 200) },
		"a moment of heat":         func(b *board) { add(&b.Throttle.Time[telemetry.ThrottleCauseSWThermal], 9) },
		"a few packets sent again": func(b *board) { add(&b.Links[1].Read.Links.Errors[telemetry.LinkErrorTypeReplay], 99) },
		"errors of PCI Express":    func(b *board) { add(&b.Links[0].Read.Links.Errors[telemetry.LinkErrorTypeRecovery], 5) },
		"ninety-nine on both links": func(b *board) {
			add(&b.Links[1].Read.Links.Errors[telemetry.LinkErrorTypeCrc], 99)
			add(&b.Links[2].Read.Links.Errors[telemetry.LinkErrorTypeCrc], 99)
		},
	} {
		r := newRig(healthy())
		r.look(0)
		r.watch(time.Hour)
		change(r.board)
		want(t, name, r.look(time.Second), nil)
	}
}

// What must be reset, restarted, drained or replaced is below the 0.5 of the alert by itself, and what a
// device works on with is not, even all together.
func TestWeights(t *testing.T) {
	mild := 0.
	for i, rule := range telemetry.HealthRules {
		switch term := telemetry.HealthTerm(i); term {
		case telemetry.HealthTermRecoveryAction, telemetry.HealthTermXIDRecovery, telemetry.HealthTermRemapFailure:
			if 1-rule.Weight >= 0.5 {
				t.Errorf("with %s the score is %v, want below 0.5", term, 1-rule.Weight)
			}
		case telemetry.HealthTermThermalSlowdown, telemetry.HealthTermPCIEWidth, telemetry.HealthTermNvlinkErrors:
			mild += rule.Weight
		}
	}
	if 1-mild <= 0.5 {
		t.Errorf("with all that is mild the score is %v, want above 0.5", 1-mild)
	}
	pending := telemetry.HealthRules[telemetry.HealthTermRemapPending].Weight + telemetry.HealthRules[telemetry.HealthTermECCUncorrected].Weight
	if 1-pending >= 0.5 {
		t.Errorf("after an error whose row waits the score is %v, want below 0.5", 1-pending)
	}
}

// valueOf is a reading of the board, or of one of its links.
func valueOf(from *telemetry.HealthReading, b *board, link int) *metric.Value {
	if from.Device != nil {
		return from.Device(&b.Device)
	}
	return from.Link(&b.Links[link].Read)
}

// Whatever happens to a board, and whatever it tells, the score is between 0 and 1, and 1 less what
// the terms take; it is there when one of them is.
func TestProperty(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test that repeats
	r := newRig(healthy())
	lowest := 1.
	for step := range 20_000 {
		b := r.board
		if random.IntN(400) == 0 {
			*b = *healthy()
		}
		for _, rule := range telemetry.HealthRules {
			for _, from := range rule.From {
				v := valueOf(&from, b, random.IntN(len(b.Links)))
				switch n := random.IntN(4000); {
				case n < 2:
					v.Fail([]*metric.Reason{metric.Late, metric.Unsupported, metric.NoData}[random.IntN(3)])
				case n < 4 && from.Least > 0:
					v.Set(0)
				case n < 12:
					add(v, from.Least+random.Float64())
				case n < 400 && from.Least == 0 && from.Below == nil:
					v.SetBool(n < 20)
				}
			}
		}
		b.Presence.Up.SetBool(random.IntN(20) > 0)
		got := r.look(time.Duration(random.IntN(120)-2) * time.Second)
		sum, known := 0., false
		for i, v := range got.Penalty {
			n, told := v.Get()
			sum, known = sum+n, known || told
			if weight := telemetry.HealthRules[i].Weight; told && n != 0 && n != weight {
				t.Fatalf("step %d: %s takes %v, want 0 or %v", step, telemetry.HealthTerm(i), n, weight)
			}
		}
		score, told := got.Score.Get()
		if told != known || score < 0 || score > 1 || told && math.Abs(score-max(0, 1-sum)) > 1e-9 {
			t.Fatalf("step %d: score %v, told %v, and terms take %v, known %v", step, score, told, sum, known)
		}
		if told {
			lowest = min(lowest, score)
		}
	}
	if lowest > 0 {
		t.Errorf("the lowest score was %v, want the floor to be reached", lowest)
	}
}
