package self

import (
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

func asking(s *snapshot.Snapshot) Attribution {
	return Attribution{
		Witnesses: []Witness{
			{Name: "podresources", Up: true, Read: s.Taken.Add(-3 * time.Second), Requests: 12},
			{Name: "proc", Faults: []Fault{{"denied", 4}}},
			{Name: "api", Requests: 2, Faults: []Fault{{"denied", 2}}},
		},
		Cluster:  &Cluster{Pods: 5, Holdings: 4, Strays: 1, Unseen: 7, Connections: 2, Rejected: 8},
		Unplaced: map[string]int{"its number is not in /proc": 3},
		Clamps:   map[string]uint64{"gpu.workload.busy.time": 6},
		Folded:   9,
		Missed:   700,
	}
}

func TestAttribution(t *testing.T) {
	x := New(Config{Attribution: asking})
	s := new(snapshot.Snapshot)
	for i := range 2 { // labels are kept from one snapshot to the next, and new faults are 0 for the hold
		s.Taken = time.Unix(1_800_000_000, 0).Add(time.Duration(i-1) * 30 * time.Second)
		s.Self.Attribution.Up, s.Self.Attribution.Age, s.Self.Attribution.Requests = nil, nil, nil
		s.Self.Attribution.Faults, s.Self.Attribution.UnplacedProcesses, s.Self.Exporter.RemainderClamps = nil, nil, nil
		x.Stage(s)
	}
	a, e := &s.Self.Attribution, &s.Self.Exporter
	for name, c := range map[string]struct {
		got  []metric.Keyed
		want map[string]float64
	}{
		"up":       {a.Up, map[string]float64{`gpumeter_witness="podresources"`: 1, `gpumeter_witness="api"`: 0}},
		"age":      {a.Age, map[string]float64{`gpumeter_witness="podresources"`: 3}}, // the other never told anything
		"requests": {a.Requests, map[string]float64{`gpumeter_witness="podresources"`: 12, `gpumeter_witness="api"`: 2}},
		"faults":   {a.Faults, map[string]float64{`gpumeter_witness="api",gpumeter_reason="denied"`: 2, `gpumeter_witness="proc",gpumeter_reason="denied"`: 4}},
		"unplaced": {a.UnplacedProcesses, map[string]float64{`gpumeter_reason="its number is not in /proc"`: 3}},
		"clamps":   {e.RemainderClamps, map[string]float64{`gpumeter_metric="gpu.workload.busy.time"`: 6}},
		"single": {
			[]metric.Keyed{{Value: a.Pods}, {Value: a.Holdings}, {Value: a.Strays}, {Value: a.UnseenPods}, {Value: a.Connections}, {Value: a.RejectedEntries}, {Value: e.OverflowWorkloads}, {Value: e.UnobservedTime}},
			nil,
		},
	} {
		if name == "single" {
			for i, want := range []float64{5, 4, 1, 7, 2, 8, 9, 700} {
				if n, ok := c.got[i].Value.Get(); !ok || n != want {
					t.Errorf("number %d is %v, %v; want %v", i, n, ok, want)
				}
			}
			continue
		}
		if len(c.got) != len(c.want) {
			t.Errorf("%s: %d series, want %d", name, len(c.got), len(c.want))
		}
		for _, k := range c.got {
			if n, ok := k.Value.Get(); !ok || n != c.want[k.Labels.Text()] {
				t.Errorf("%s{%s} is %v, want %v", name, k.Labels.Text(), n, c.want[k.Labels.Text()])
			}
		}
	}
}

// Outside a cluster nothing is said of pods: 0 would be a number nobody counted.
func TestNoCluster(t *testing.T) {
	x := New(Config{Attribution: func(*snapshot.Snapshot) Attribution { return Attribution{} }})
	s := new(snapshot.Snapshot)
	x.Stage(s)
	if _, told := s.Self.Attribution.Pods.Get(); told {
		t.Error("pods are counted")
	}
	if n, told := s.Self.Exporter.OverflowWorkloads.Get(); !told || n != 0 {
		t.Errorf("workloads beyond the limit: %v, %v", n, told)
	}
}
