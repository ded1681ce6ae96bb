//go:build cgo

package nvml

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// errorsOf reads a device's XIDs as code and count.
func errorsOf(list []metric.Keyed) map[string]float64 {
	out := map[string]float64{}
	for _, k := range list {
		out[k.Labels.Get("gpu_xid")], _ = k.Value.Get()
	}
	return out
}

// counted is what is told once what is new has been told as 0.
func counted(x *xids) telemetry.XID {
	var out telemetry.XID
	for range 2 {
		x.read(true, &out)
	}
	return out
}

// brief writes counts as code×n, and what they ask for where it is not 0.
func brief(x telemetry.XID) string {
	var out []string
	for _, k := range x.Errors {
		n, _ := k.Value.Get()
		out = append(out, fmt.Sprintf("%s×%v", k.Labels.Get("gpu_xid"), n))
	}
	for i, v := range x.Events {
		if n, _ := v.Get(); n > 0 {
			out = append(out, fmt.Sprintf("%s×%v", telemetry.XIDAction(i), n))
		}
	}
	return strings.Join(out, " ")
}

func newBook() *xidBook { return newXIDBook(Config{Logger: slog.New(slog.DiscardHandler)}) }

// Two tellers tell of one XID at most two seconds apart; each is counted once, in whatever order
// they come. D is the driver and L the log, at a second.
func TestXIDsArePaired(t *testing.T) {
	for script, want := range map[string]int{
		"D0":                        1,
		"L0":                        1,
		"D0 L0":                     1,
		"L0 D0":                     1,
		"D0 L2":                     1,
		"L0 D2":                     1,
		"D2 L0":                     1,
		"D0 L2.001":                 2,
		"L0 D2.001":                 2,
		"D0 D0":                     2,
		"L0 L0":                     2,
		"L0 L0 L0 D0":               3, // the driver tells only the last
		"D0 L0 L0 L0":               3,
		"L0 L0 D0 D0":               2,
		"L0 D0 L0 D0 L0 D0":         3,
		"D0 L0 D1 L1 D2 L2":         3,
		"L0 L1 L2 D0 D1 D2":         3,
		"D0 D1 D2 L0 L1 L2":         3,
		"D0 L1 L1.5 D1.5":           2,
		"D0 D9 L0 L9":               2, // the log is read late
		"L0 D9 D9 L9":               3,
		"D0 L0.1 D50 L50.1 L50.2":   3,
		"D0 D1 D2 D3 L0 L3":         4,
		"E0 L0":                     0, // an earlier run counted it
		"E0 L0 L0":                  1,
		"E0 E1 L0 D1.5 L1 L1.5":     1,
		"D30 E0 L0 L30":             1,
		"E0 D30 L0 L30":             1,
		"L0 L0.1 L0.2 D0.3 L5 D5.1": 4,
	} {
		x := newBook().device("GPU-0")
		for word := range strings.FieldsSeq(script) {
			seconds, err := time.ParseDuration(word[1:] + "s")
			if err != nil {
				t.Fatal(err)
			}
			at := noon.Add(seconds)
			switch word[0] {
			case 'D':
				x.add(79, at)
			case 'L':
				x.heard(79, at, "")
			case 'E':
				x.expect(79, at)
			}
		}
		if got := errorsOf(counted(x).Errors)["79"]; int(got) != want {
			t.Errorf("%s is counted as %v, want %d", script, got, want)
		}
	}
}

// Codes and devices are not paired with each other.
func TestXIDsOfTwoCodes(t *testing.T) {
	b := newBook()
	x, y := b.device("GPU-x"), b.device("GPU-y")
	x.add(13, noon)
	x.heard(31, noon, "")
	y.heard(13, noon, "")
	for _, c := range []struct {
		of   *xids
		want string
	}{{x, "13×1 31×1 application×2"}, {y, "13×1 application×1"}} {
		if got := brief(counted(c.of)); got != c.want {
			t.Errorf("%s: %s, want %s", c.of.uuid, got, c.want)
		}
	}
}

// What only one of both tells does not pile up.
func TestUnpairedIsBounded(t *testing.T) {
	x := newBook().device("GPU-0")
	for i := range 10 * maxUnpaired {
		x.add(79, noon.Add(time.Duration(i)*time.Hour))
	}
	if n := len(x.codes[0].unpaired[driver]); n != maxUnpaired {
		t.Errorf("%d are kept, want %d", n, maxUnpaired)
	}
	if got := brief(counted(x)); got != "79×640 reboot×640" {
		t.Error(got)
	}
}

// What is new is 0 in the first reading that has it: the actions in the device's first, though XIDs
// came before it, and a code in its own.
func TestXIDsAreBornAsZero(t *testing.T) {
	x := newBook().device("GPU-0")
	x.heard(79, noon.Add(1500*time.Millisecond), "")
	x.heard(79, noon, "") // replayed out of order
	x.heard(7777, noon, "")
	read := func() (out telemetry.XID) {
		x.read(true, &out)
		return out
	}
	first := read()
	if got := brief(first); got != "79×0 7777×0" {
		t.Errorf("first: %s", got)
	}
	for i, v := range first.Events {
		want(t, telemetry.XIDAction(i).String(), v, 0.)
	}
	want(t, "last seen", first.LastSeenTimestamp[0].Value, float64(noon.Unix())+1.5)
	if got := brief(read()); got != "79×2 7777×1 reboot×2 unknown×1" {
		t.Errorf("second: %s", got)
	}
	x.add(48, noon.Add(time.Hour))
	x.add(79, noon.Add(time.Hour))
	if got := brief(read()); got != "48×0 79×3 7777×1 reboot×3 drain×1 unknown×1" {
		t.Errorf("third: %s", got)
	}
	fourth := read()
	if got := brief(fourth); got != "48×1 79×3 7777×1 reboot×3 drain×1 unknown×1" {
		t.Errorf("fourth: %s", got)
	}
	want(t, "last seen", fourth.LastSeenTimestamp[1].Value, float64(noon.Add(time.Hour).Unix()))
	if got := brief(first); got != "79×0 7777×0" {
		t.Errorf("what was told first is now %s", got)
	}
	if again := read(); &again.Errors[0] != &fourth.Errors[0] || again.Errors[0].Labels != fourth.Errors[0].Labels {
		t.Error("the lists are made again though nothing changed")
	}
}

// Every scraper sees the step from 0, whoever else reads in between: two Prometheus servers, the landing
// page, the attributor.
func TestXID_IsZeroForTheHoldWhoeverReads(t *testing.T) {
	const interval, hold = 15 * time.Second, 30 * time.Second
	now := noon
	book := newXIDBook(Config{Logger: slog.New(slog.DiscardHandler), Hold: hold, now: func() time.Time { return now }})
	x := book.device("GPU-0")
	read := func() string {
		var out telemetry.XID
		x.read(true, &out)
		return brief(out)
	}
	first := map[string]string{}
	for tick := range 12 {
		if tick == 5 {
			x.add(79, now)
		}
		for range 3 { // other readers
			read()
		}
		scraper := []string{"A", "B"}[tick%2] // each scrapes once an interval, half an interval apart
		if got := read(); strings.Contains(got, "79") && first[scraper] == "" {
			first[scraper] = got
		}
		now = now.Add(interval / 2)
	}
	for _, scraper := range []string{"A", "B"} {
		if first[scraper] != "79×0 reboot×1" {
			t.Errorf("scraper %s: the first sample of the code is %q, so increase() is 0", scraper, first[scraper])
		}
	}
	if got := read(); got != "79×1 reboot×1" {
		t.Errorf("after the hold: %s", got)
	}
}

// Actions start at 0 and stay there for the hold, though XIDs came before the first reading.
func TestXID_ActionsAreZeroForTheHold(t *testing.T) {
	now := noon
	x := newXIDBook(Config{Logger: slog.New(slog.DiscardHandler), Hold: 30 * time.Second, now: func() time.Time { return now }}).device("GPU-0")
	x.heard(79, noon, "")
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, "79×0"}, {10 * time.Second, "79×0"}, {19 * time.Second, "79×0"}, {time.Second, "79×1 reboot×1"}} {
		now = now.Add(step.after)
		var out telemetry.XID
		x.read(true, &out)
		if got := brief(out); got != step.want {
			t.Errorf("after %v: %s, want %s", now.Sub(noon), got, step.want)
		}
	}
}

// An XID an earlier run has counted is no code of this one.
func TestExpectedIsNotTold(t *testing.T) {
	x := newBook().device("GPU-0")
	x.expect(79, noon)
	if got := counted(x).Errors; got == nil || len(got) > 0 {
		t.Errorf("told: %v, want an empty list", got)
	}
}

// Who listens to nobody tells nothing, not 0.
func TestNobodyTells(t *testing.T) {
	var out telemetry.XID
	newBook().device("GPU-0").read(false, &out)
	if out.Errors != nil || out.LastSeenTimestamp != nil || out.Events[0].Why() != metric.Unread {
		t.Errorf("told: %+v", out)
	}
}

// One line is logged for each code that is new on a device, with its name and what it asks for, not
// one for each XID.
func TestXIDsAreLogged(t *testing.T) {
	var log strings.Builder
	x := newXIDBook(Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}).device("GPU-0")
	for range 3 {
		x.add(79, noon)
		x.heard(63, noon.Add(time.Hour), "pid=7, name=a \"b\"")
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines:\n%s", len(lines), log.String())
	}
	for i, words := range [][]string{
		{"level=WARN", "uuid=GPU-0", "xid=79", "name=ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS", "action=reboot"},
		{"level=INFO", "xid=63", "action=none", `said="pid=7, name=a \"b\""`},
	} {
		for _, w := range words {
			if !strings.Contains(lines[i], w) {
				t.Errorf("%s\nlacks %s", lines[i], w)
			}
		}
	}
}

// Codes that the catalogue does not have are a few series of a device, whatever the kernel's log says; those that
// it has are always series of their own, and all are counted.
func TestXIDs_UnknownCodesAreFolded(t *testing.T) {
	x := newBook().device("GPU-0")
	const most = 9999
	for code := uint64(1); code <= most; code++ {
		x.heard(code, noon.Add(time.Duration(code)*time.Minute), "")
	}
	got := errorsOf(counted(x).Errors)
	known, sum := 0, 0.
	for code := uint64(1); code <= most; code++ {
		if telemetry.XIDMeaningOf(code).Brief == "" {
			continue
		}
		known++
		if got[fmt.Sprint(code)] != 1 {
			t.Errorf("code %d of the catalogue is counted %v times, want 1", code, got[fmt.Sprint(code)])
		}
	}
	for _, n := range got {
		sum += n
	}
	if want := known + maxUnknown + 1; len(got) != want || sum != most {
		t.Errorf("%d series with %v errors, want %d with %d", len(got), sum, want, most)
	}
	if want := float64(most - known - maxUnknown); got["0"] != want {
		t.Errorf("code 0 is counted %v times, want %v", got["0"], want)
	}
	x.heard(79, noon, "")
	x.heard(5000, noon.Add(time.Hour), "")
	if again := errorsOf(counted(x).Errors); again["79"] != 2 || again["0"] != got["0"]+1 {
		t.Errorf("later, code 79 is counted %v times and code 0 %v times", again["79"], again["0"])
	}
}
