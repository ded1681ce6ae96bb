package sim

import (
	"strconv"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// The three metrics of XIDs tell one story: how often each code was seen, under what it asks for,
// and when it last was.
func TestXIDsAgree(t *testing.T) {
	c, devices := start(t, "h100x1", 3)
	before := map[string]float64{}
	steps := 0
	for at := time.Duration(0); at < 90*24*time.Hour; at += 41 * time.Minute {
		c.moveTo(at)
		x := read(t, devices[0]).XID
		if len(x.Errors) != len(x.LastSeenTimestamp) {
			t.Fatalf("%d codes, and %d were last seen", len(x.Errors), len(x.LastSeenTimestamp))
		}
		var want [len(x.Events)]float64
		for i, k := range x.Errors {
			code := k.Labels.Get("gpu_xid")
			n, last := number(t, k.Value), number(t, x.LastSeenTimestamp[i].Value)
			if x.LastSeenTimestamp[i].Labels.Get("gpu_xid") != code {
				t.Fatalf("%s is followed by %s", code, x.LastSeenTimestamp[i].Labels.Text())
			}
			if now := float64(c.now().Unix()); last > now || n > before[code] && last <= now-41*60 {
				t.Errorf("at %v, XID %s was seen %v times, %v before, and last at %v", now, code, n, before[code], last)
			}
			if n > before[code] {
				steps++
			}
			before[code] = n
			number, err := strconv.ParseUint(code, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			want[telemetry.XIDActionOf(number)] += n
		}
		for i, v := range x.Events {
			if got := number(t, v); got != want[i] {
				t.Errorf("%v XIDs ask for %s, want %v", got, telemetry.XIDAction(i), want[i])
			}
		}
	}
	if len(before) != 5 || steps < 100 {
		t.Errorf("%d codes in %d steps", len(before), steps)
	}
}
