package health

import (
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

const (
	ecc      = telemetry.HealthTermECCUncorrected
	recovery = telemetry.HealthTermXIDRecovery
	width    = telemetry.HealthTermPCIEWidth
	thermal  = telemetry.HealthTermThermalSlowdown
)

// broken has an ECC error more.
func (r *rig) broken() { add(&r.board.ECC.Errors[telemetry.ECCErrorTypeUncorrected], 1) }

// unknown wants a term to be absent, and why.
func unknown(t *testing.T, what string, got telemetry.Health, term telemetry.HealthTerm, why *metric.Reason) {
	t.Helper()
	if n, told := got.Penalty[term].Get(); told || got.Penalty[term].Why() != why {
		t.Errorf("%s: %s takes %v, %v; want none, %s", what, term, n, got.Penalty[term].Why(), why.Text)
	}
}

// score wants the score to be that.
func score(t *testing.T, what string, got telemetry.Health, n float64) {
	t.Helper()
	if is, told := got.Score.Get(); !told || is != n {
		t.Errorf("%s: score %v, %v; want %v", what, is, told, n)
	}
}

// Counts of before the exporter started are no errors, and that there were none is known only when
// the window has been watched.
func TestBeginning(t *testing.T) {
	r := newRig(healthy())
	first := r.look(0)
	unknown(t, "at the start", first, ecc, metric.NoData)
	unknown(t, "at the start", first, recovery, metric.NoData)
	score(t, "at the start", first, 1)
	got := r.watch(5 * time.Minute)
	unknown(t, "after five minutes", got, ecc, metric.NoData)
	if n, told := got.Penalty[thermal].Get(); !told || n != 0 {
		t.Errorf("after five minutes %s takes %v, %v; want 0", thermal, n, told)
	}
	r.broken()
	score(t, "an error in the first hour", r.look(time.Second), 0.6)
}

// An XID between the start of the exporter and the first picture is not lost, and one that was long
// ago by then is not told of.
func TestFresh(t *testing.T) {
	for after, want := range map[time.Duration]float64{50 * time.Second: 0.4, 2 * time.Hour: 1} {
		b := healthy()
		add(&b.XID.Events[telemetry.XIDActionReboot], 1)
		score(t, after.String()+" after the start", newRig(b).look(after), want)
	}
}

// After longer than the window without a picture nobody knows when an error was.
func TestGap(t *testing.T) {
	for name, gap := range map[string]struct {
		long time.Duration
		want float64
	}{"as long as the window": {time.Hour, 0.6}, "longer": {time.Hour + time.Second, 1}} {
		r := newRig(healthy())
		r.look(0)
		want(t, "before", r.watch(time.Hour), nil)
		r.broken()
		got := r.look(gap.long)
		score(t, name, got, gap.want)
		if gap.want == 1 {
			unknown(t, name, got, ecc, metric.NoData)
			want(t, "an hour later", r.watch(time.Hour), nil)
		}
	}
	r := newRig(healthy())
	r.look(0)
	r.watch(time.Hour)
	unknown(t, "nothing rose, and nobody looked", r.look(2*time.Hour), ecc, metric.NoData)
}

// A counter that was set back is no error, neither then nor when it comes to where it was; what
// happened before is not forgotten.
func TestReset(t *testing.T) {
	r := newRig(healthy())
	r.look(0)
	r.watch(time.Hour)
	errors := &r.board.ECC.Errors[telemetry.ECCErrorTypeUncorrected]
	errors.Set(3)
	got := r.look(time.Minute)
	unknown(t, "set back", got, ecc, metric.NoData)
	score(t, "set back", got, 1)
	add(errors, 1)
	score(t, "an error since", r.look(time.Minute), 0.6)
	errors.Set(0)
	score(t, "set back again", r.look(time.Minute), 0.6)
	want(t, "an hour later", r.watch(time.Hour), nil)
}

// A clock that is set back, and a year ahead, makes no error of none, and forgets none too early.
func TestClockJumps(t *testing.T) {
	r := newRig(healthy())
	r.look(0)
	want(t, "before", r.watch(time.Hour), nil)
	want(t, "set back", r.look(-24*time.Hour), nil)
	r.broken()
	score(t, "an error", r.look(time.Second), 0.6)
	score(t, "set back again", r.look(-time.Hour), 0.6)
	score(t, "nearly an hour later", r.watch(time.Hour-time.Second), 0.6)
	want(t, "an hour later", r.look(time.Second), nil)
	got := r.look(365 * 24 * time.Hour)
	score(t, "a year ahead", got, 1)
	unknown(t, "a year ahead", got, ecc, metric.NoData)
}

// A picture for a scrape that could not wait tells what is known, and what it tells is counted once.
func TestPartial(t *testing.T) {
	r := newRig(healthy())
	r.look(0)
	r.watch(time.Hour)
	r.broken()
	r.at = r.at.Add(time.Second)
	score(t, "seen there first", r.picture(true), 0.6)
	if n := len(r.cases["GPU-0"].counts[place{int(ecc), 0, ""}].rises); n != 0 {
		t.Errorf("%d rises are remembered of it, want none", n)
	}
	score(t, "the picture after", r.look(time.Second), 0.6)
	r.at = r.at.Add(time.Hour)
	score(t, "an hour later", r.picture(true), 1)
	score(t, "which was not yet over", r.look(-time.Minute), 0.6)

	r = newRig(healthy())
	errors := r.board.ECC.Errors[telemetry.ECCErrorTypeUncorrected]
	r.board.ECC.Errors[telemetry.ECCErrorTypeUncorrected].Fail(metric.Late)
	r.look(0)
	delete(r.cases["GPU-0"].counts, place{int(ecc), 0, ""})
	r.board.ECC.Errors[telemetry.ECCErrorTypeUncorrected] = errors
	r.picture(true)
	if c := r.cases["GPU-0"].counts[place{int(ecc), 0, ""}]; c != nil {
		t.Errorf("a counter that was told there first is remembered as %+v, want it not to be", c)
	}
}

// A device that does not answer does not look healthy; what is known to hold is told.
func TestSilent(t *testing.T) {
	r := newRig(healthy())
	r.look(0)
	r.watch(time.Hour)
	whole := *r.board
	r.board = new(board)
	r.board.Presence.Up.Set(0)
	for i := range r.board.XID.Events {
		r.board.XID.Events[i].Set(0)
	}
	got := r.look(time.Second)
	if n, told := got.Score.Get(); told {
		t.Errorf("silent: score %v, want none", n)
	}
	unknown(t, "silent", got, recovery, metric.NoData)
	r.board.XID.Events[telemetry.XIDActionReboot].Set(1)
	score(t, "silent after an XID", r.look(time.Second), 0.4)
	r.board = &whole
	r.board.XID.Events[telemetry.XIDActionReboot].Set(1)
	want(t, "it is back", r.look(time.Minute), map[telemetry.HealthTerm]float64{recovery: 0.6})
}

// What the hardware does not tell is absent, for the reason its readings give, and takes nothing.
func TestNotTold(t *testing.T) {
	r := newRig(new(board))
	got := r.look(0)
	if n, told := got.Score.Get(); told {
		t.Errorf("nothing told: score %v, want none", n)
	}
	unknown(t, "nothing told", got, width, metric.Unsupported)

	r = newRig(healthy())
	r.look(0)
	r.watch(time.Hour)
	r.board.ECC.Errors[telemetry.ECCErrorTypeUncorrected].Fail(metric.Unsupported)
	unknown(t, "no ECC", r.look(time.Second), ecc, metric.Unsupported)
	r.board.Repair.RetiredPagesPending.Fail(metric.Unsupported)
	if n, told := r.look(time.Second).Penalty[telemetry.HealthTermRemapPending].Get(); !told || n != 0 {
		t.Errorf("rows and no pages: %v, %v; want 0", n, told)
	}
	r.board.Repair.RetiredPagesPending.Fail(metric.Late)
	unknown(t, "pages that may wait", r.look(time.Second), telemetry.HealthTermRemapPending, metric.Late)
	r.board.Repair.RetiredPagesPending.Fail(metric.Unsupported)
	r.board.Repair.Pending[telemetry.RepairPartTpc].Fail(metric.Late)
	unknown(t, "no pages, and parts that may wait", r.look(time.Second), telemetry.HealthTermRemapPending, metric.Late)
}

// An error stays known while its counter is not told for a while.
func TestTermOutlastsReading(t *testing.T) {
	r := newRig(healthy())
	r.look(0)
	r.watch(time.Hour)
	r.broken()
	r.look(time.Second)
	n := r.board.ECC.Errors[telemetry.ECCErrorTypeUncorrected]
	r.board.ECC.Errors[telemetry.ECCErrorTypeUncorrected].Fail(metric.Late)
	score(t, "late", r.look(time.Minute), 0.6)
	r.board.ECC.Errors[telemetry.ECCErrorTypeUncorrected] = n
	score(t, "told again", r.look(time.Minute), 0.6)
}

// Fewer lanes count under load, and then for as long as nothing else is seen under load.
func TestWidthUnderLoad(t *testing.T) {
	r := newRig(healthy())
	busy := func(share float64) { r.board.Utilization.Utilization.Set(share) }
	busy(0)
	r.board.width(4)
	got := r.look(0)
	unknown(t, "narrow at rest", got, width, metric.NoData)
	score(t, "narrow at rest", got, 1)
	busy(0.5)
	score(t, "narrow under load", r.look(time.Second), 0.85)
	busy(0.01)
	score(t, "at rest again", r.watch(30*time.Minute), 0.85)
	unknown(t, "an hour later", r.watch(30*time.Minute), width, metric.NoData)
	busy(1)
	score(t, "under load again", r.look(time.Second), 0.85)
	r.board.width(16)
	busy(0)
	want(t, "wide at rest", r.look(time.Second), nil)
	r.board.Links[0].Read.Links.WidthLimit.Fail(metric.Unsupported)
	unknown(t, "no limit", r.look(time.Second), width, metric.Unsupported)
}

// Devices are told apart, and one that left the pictures is forgotten.
func TestDevices(t *testing.T) {
	j := New(noon)
	look := func(at time.Duration, ids []telemetry.Identity, boards ...*board) []snapshot.Device {
		s := &snapshot.Snapshot{Taken: noon.Add(at)}
		for i := range boards {
			s.Devices = append(s.Devices, snapshot.Device{Identity: &ids[i], Read: boards[i].Device})
		}
		j.Stage(s)
		return s.Devices
	}
	ids := []telemetry.Identity{{UUID: "GPU-0"}, {PCI: "0000:83:00.0"}}
	a, b := healthy(), healthy()
	look(0, ids, a, b)
	add(&b.ECC.Errors[telemetry.ECCErrorTypeUncorrected], 1)
	got := look(time.Minute, ids, a, b)
	score(t, "the healthy one", got[0].Read.Health, 1)
	score(t, "the other", got[1].Read.Health, 0.6)
	look(2*time.Minute, ids, a)
	if len(j.cases) != 1 {
		t.Errorf("%d devices are remembered, want 1", len(j.cases))
	}
}

// What is remembered is bounded, however often a counter rises and a device is read.
func TestBounded(t *testing.T) {
	c := new(count)
	for i := range 100_000 {
		c.see(float64(i), time.Duration(i)*time.Second, time.Hour, false)
	}
	if n := len(c.rises); n > grains+1 {
		t.Errorf("%d rises are kept, want %d at most", n, grains+1)
	}
	if got := c.within(99_999*time.Second, time.Hour); got < 3600 || got > 3660 {
		t.Errorf("it rose by %v in the last hour, want 3600 to 3660", got)
	}
}

func BenchmarkStage(b *testing.B) {
	j, s := New(noon), &snapshot.Snapshot{Taken: noon}
	for i := range 8 {
		x := healthy()
		for id := range int64(16) {
			x.Links = append(x.Links, link(telemetry.LinkTypeNvlink, id+2))
			x.Links[len(x.Links)-1].Read = x.Links[1].Read
		}
		s.Devices = append(s.Devices, snapshot.Device{Identity: &telemetry.Identity{UUID: "GPU-" + string(rune('0'+i))}, Read: x.Device})
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Taken = s.Taken.Add(time.Second)
		j.Stage(s)
	}
}
