package self

import (
	"testing"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/source/sourcetest"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func health() snapshot.Health {
	h := metric.NewHistogram(telemetry.ExporterReadDurationBuckets)
	h.Observe(0.002)
	return snapshot.Health{
		Reads: 7,
		Sources: []snapshot.SourceHealth{
			{Name: "nvml", State: telemetry.SourceStateServing, Devices: 8, Duration: h},
			{Name: "host", State: telemetry.SourceStateAbsent},
		},
		Faults: []snapshot.Fault{{Source: "nvml", Metric: "gpu.power.draw", Reason: "implausible", Count: 3}},
	}
}

func TestSpecIsRead(t *testing.T) {
	s := &snapshot.Snapshot{Health: health()}
	New(Config{Build: Build{"1.2.3", "abc", "go1.26"}, StateFaults: func() uint64 { return 5 }, Attribution: asking, Downtime: func() (float64, bool) { return 30, true }, Target: func() Target { return Target{Node: "node-1"} }}).Stage(s)
	sourcetest.SpecIsRead(t, "self", telemetry.SelfFamilies, &s.Self)
}

func TestStage(t *testing.T) {
	x := New(Config{Build: Build{"1.2.3", "abc", "go1.26"}, StateFaults: func() uint64 { return 5 }})
	s := &snapshot.Snapshot{Health: health(), Devices: make([]snapshot.Device, 3)}
	s.Devices[0].Read.Presence.Up.Set(0)
	s.Devices[1].Read.Presence.Up.Set(1)
	x.Stage(s)
	e := s.Self.Exporter
	if n, _ := e.DevicesExpected.Get(); n != 3 {
		t.Errorf("%v devices expected", n)
	}
	if n, _ := e.DevicesPresent.Get(); n != 1 {
		t.Errorf("%v devices present", n)
	}
	if n, _ := e.StateFaults.Get(); n != 5 {
		t.Errorf("%v faults of the state", n)
	}
	if n, _ := e.Reads.Get(); n != 7 {
		t.Errorf("reads %v", n)
	}
	if len(e.SourceState) != 10 {
		t.Fatalf("%d states, want five per source", len(e.SourceState))
	}
	for _, k := range e.SourceState {
		want := 0.0
		if s := k.Labels.Text(); s == `gpumeter_source="nvml",gpumeter_source_state="serving"` || s == `gpumeter_source="host",gpumeter_source_state="absent"` {
			want = 1
		}
		if n, _ := k.Value.Get(); n != want {
			t.Errorf("%s is %v", k.Labels.Text(), n)
		}
	}
	if n, _ := e.SourceDevices[0].Value.Get(); n != 8 {
		t.Errorf("%v devices", n)
	}
	if n, _ := e.ReadFaults[0].Value.Get(); n != 3 {
		t.Errorf("%v faults", n)
	}
	if got, want := e.BuildInfo[0].Labels.Text(), `gpumeter_version="1.2.3",gpumeter_revision="abc",gpumeter_go_version="go1.26"`; got != want {
		t.Errorf("build %s, want %s", got, want)
	}
	if len(e.ReadDuration) != 1 || len(e.ReadFaults) != 1 {
		t.Errorf("%d durations, %d faults", len(e.ReadDuration), len(e.ReadFaults))
	}
	if got := e.ReadFaults[0].Labels.Text(); got != `gpumeter_source="nvml",gpumeter_metric="gpu.power.draw",gpumeter_reason="implausible"` {
		t.Errorf("fault %s", got)
	}
	again := &snapshot.Snapshot{Health: health()}
	again.Health.Faults[0].Count = 4
	x.Stage(again)
	if again.Self.Exporter.ReadFaults[0].Labels != e.ReadFaults[0].Labels {
		t.Error("labels are made anew at each snapshot")
	}
}
