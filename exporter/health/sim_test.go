package health

import (
	"context"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/source/sim"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Days of simulated nodes, read every two minutes: what befalls their boards is in their scores, and a
// board that nothing befalls is healthy.
func TestSimulatedNode(t *testing.T) {
	for _, node := range []struct {
		name  string
		days  int
		terms []telemetry.HealthTerm // that hold now and then
	}{
		{"mixed", 2, []telemetry.HealthTerm{
			telemetry.HealthTermRecoveryAction, telemetry.HealthTermXIDRecovery, telemetry.HealthTermECCUncorrected, telemetry.HealthTermRemapPending,
		}},
		{"h100x8", 3, []telemetry.HealthTerm{
			telemetry.HealthTermRecoveryAction, telemetry.HealthTermXIDRecovery, telemetry.HealthTermECCUncorrected, telemetry.HealthTermRemapPending,
			telemetry.HealthTermThermalSlowdown, telemetry.HealthTermNvlinkErrors,
		}},
	} {
		t.Run(node.name, func(t *testing.T) {
			run := simulate(t, node.name, node.days)
			for _, term := range node.terms {
				if run.held[term] == 0 {
					t.Errorf("%s never held", term)
				}
				delete(run.held, term)
			}
			if len(run.held) > 0 {
				t.Errorf("terms that no board has held: %v", run.held)
			}
			if run.well < run.all/2 || run.low == 0 || run.low > run.all/5 {
				t.Errorf("of %d scores %d are 1 and %d below 0.5", run.all, run.well, run.low)
			}
		})
	}
}

// simulated counts pictures of boards: those in which a term held, all, and those whose score is 1 or
// below 0.5.
type simulated struct {
	held           map[telemetry.HealthTerm]int
	all, well, low int
}

func simulate(t *testing.T, node string, days int) simulated {
	t.Helper()
	now := noon
	src, err := sim.New(sim.Config{Node: node, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := src.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	devices, err := reader.Devices(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	j, out := New(noon), simulated{held: map[telemetry.HealthTerm]int{}}
	for range days * 24 * 30 {
		s := &snapshot.Snapshot{Taken: now}
		for _, d := range devices {
			x := snapshot.Device{Identity: d.Identity()}
			if why := d.Read(context.Background(), &x.Read); why != nil {
				t.Fatal(why)
			}
			s.Devices = append(s.Devices, x)
		}
		j.Stage(s)
		for i := range s.Devices {
			out.count(t, &s.Devices[i])
		}
		now = now.Add(2 * time.Minute)
	}
	return out
}

func (x *simulated) count(t *testing.T, d *snapshot.Device) {
	t.Helper()
	for term, v := range d.Read.Health.Penalty {
		if n, _ := v.Get(); n > 0 {
			x.held[telemetry.HealthTerm(term)]++
		}
	}
	x.all++
	n, told := d.Read.Health.Score.Get()
	switch {
	case told && n == 1:
		x.well++
	case told && n < 0.5:
		x.low++
	}
	nothing, asks := d.Read.Repair.RecoveryAction[telemetry.RecoveryActionNone].Get()
	if asks && nothing == 0 && (!told || n >= 0.5) {
		t.Fatalf("%s is to be recovered, and its score is %v", d.Identity.Model, n)
	}
}
