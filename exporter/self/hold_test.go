package self

import (
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// faulty is a witness that has failed so often.
func faulty(count *uint64) func(*snapshot.Snapshot) Attribution {
	return func(*snapshot.Snapshot) Attribution {
		return Attribution{Witnesses: []Witness{{Name: "kubelet", Requests: 9, Faults: []Fault{{Reason: "timeout", Count: *count}}}}}
	}
}

// The first reader must not take the 0 from other Prometheus servers, which scrape within the hold.
func TestSelf_NewFaultOfAWitnessIsZeroForTheHold(t *testing.T) {
	count, begin := uint64(3), time.Unix(1_800_000_000, 0)
	x := New(Config{Attribution: faulty(&count)})
	for _, c := range []struct {
		after time.Duration
		want  float64
	}{{0, 0}, {15 * time.Second, 0}, {29 * time.Second, 0}, {30 * time.Second, 3}, {45 * time.Second, 3}, {-time.Hour, 3}} {
		s := &snapshot.Snapshot{Taken: begin.Add(c.after)}
		x.Stage(s)
		if got, _ := s.Self.Attribution.Faults[0].Value.Get(); got != c.want {
			t.Errorf("after %v: %v, want %v", c.after, got, c.want)
		}
	}
}

// A partial snapshot has the current source health, and the rest of the last complete snapshot.
func TestSelf_PartialHasCurrentSourceHealthAndCarriesTheRestOver(t *testing.T) {
	count := uint64(3)
	x := New(Config{Attribution: faulty(&count), StateFaults: func() uint64 { return 5 }})
	last := &snapshot.Snapshot{Health: health()}
	x.Stage(last)
	before := len(last.Self.Exporter.ReadFaults)
	x.cfg.Attribution = func(*snapshot.Snapshot) Attribution { panic("a partial snapshot must not query the witnesses") }
	s := &snapshot.Snapshot{Partial: true, Health: health()}
	s.Health.Reads++
	s.Health.Faults = append(s.Health.Faults, snapshot.Fault{Source: "attribution", Metric: "*", Reason: "late", Count: 1})
	x.Partial(s, last)
	e := &s.Self.Exporter
	if number(e.Reads) != 8 || number(e.StateFaults) != 5 || len(e.ReadFaults) != 2 || len(e.SourceState) != 10 || len(s.Self.Attribution.Up) != 1 {
		t.Errorf("reads %v, state faults %v, %d read faults, %d source states, %d witnesses", number(e.Reads), number(e.StateFaults), len(e.ReadFaults), len(e.SourceState), len(s.Self.Attribution.Up))
	}
	if n := len(last.Self.Exporter.ReadFaults); n != before {
		t.Errorf("the last snapshot changed: %d faults, had %d", n, before)
	}
	first := &snapshot.Snapshot{Partial: true, Health: health()}
	x.Partial(first, nil)
	if len(first.Self.Exporter.BuildInfo) != 1 || len(first.Self.Exporter.SourceState) != 10 {
		t.Error("before the first complete snapshot, build info or source states are missing")
	}
}

func number(v metric.Value) float64 {
	n, _ := v.Get()
	return n
}
