package self

import (
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Attribution is how finding out whose work it is went.
type Attribution struct {
	Witnesses []Witness
	Cluster   *Cluster          // nil: the machine is in none
	Unplaced  map[string]int    // processes nobody can place, by reason
	Clamps    map[string]uint64 // remainders below zero, by metric
	Folded    int               // workloads beyond the series limit
	Missed    float64           // seconds for which no use was counted
}

// Witness is one that is asked.
type Witness struct {
	Name     string
	Up       bool      // the last try went well
	Read     time.Time // when it told something last; zero: never
	Requests uint64    // 0: it is not asked, but read, such as /proc
	Faults   []Fault
}

// Fault counts questions one did not answer.
type Fault struct {
	Reason string
	Count  uint64
}

// Cluster is what is known of the pods of this node.
type Cluster struct {
	Pods, Holdings, Strays int
	Unseen, Connections    uint64
	Rejected               uint64
}

// asked identifies a series of the group.
type asked struct{ witness, reason string }

func (x *Self) attribution(s *snapshot.Snapshot) {
	if x.cfg.Attribution == nil {
		return
	}
	said := x.cfg.Attribution(s)
	a := &s.Self.Attribution
	for i := range said.Witnesses {
		w := &said.Witnesses[i]
		l := x.asked(asked{witness: w.Name})
		if w.Requests > 0 {
			up := metric.Keyed{Labels: l}
			up.Value.SetBool(w.Up)
			a.Up = append(a.Up, up)
			a.Requests = append(a.Requests, keyed(l, float64(w.Requests)))
		}
		if !w.Read.IsZero() {
			a.Age = append(a.Age, keyed(l, max(s.Taken.Sub(w.Read).Seconds(), 0)))
		}
		for _, f := range w.Faults {
			k := asked{w.Name, f.Reason}
			a.Faults = append(a.Faults, keyed(x.asked(k), x.afterHold(k, s.Taken, f.Count)))
		}
	}
	if c := said.Cluster; c != nil {
		a.Pods.Set(float64(c.Pods))
		a.Holdings.Set(float64(c.Holdings))
		a.Strays.Set(float64(c.Strays))
		a.UnseenPods.Set(float64(c.Unseen))
		a.Connections.Set(float64(c.Connections))
		a.RejectedEntries.Set(float64(c.Rejected))
	}
	for reason, n := range said.Unplaced {
		a.UnplacedProcesses = append(a.UnplacedProcesses, keyed(x.asked(asked{reason: reason}), float64(n)))
	}
	for name, n := range said.Clamps {
		s.Self.Exporter.RemainderClamps = append(s.Self.Exporter.RemainderClamps, keyed(x.clamp(name), float64(n)))
	}
	s.Self.Exporter.OverflowWorkloads.Set(float64(said.Folded))
	s.Self.Exporter.UnobservedTime.Set(said.Missed)
}

// held is when a fault counter was exposed first, and whether its hold is over.
type held struct {
	first time.Time
	live  bool
}

// afterHold returns the count of a fault, or 0 until its hold is over.
func (x *Self) afterHold(k asked, now time.Time, count uint64) float64 {
	h := x.held[k]
	if h == nil {
		h = &held{first: now}
		x.held[k] = h
	}
	h.live = h.live || now.Sub(h.first) >= x.cfg.Hold
	if !h.live {
		return 0
	}
	return float64(count)
}

func (x *Self) asked(k asked) *metric.Labels {
	l := x.witnesses[k]
	if l == nil {
		switch {
		case k.witness == "":
			l = telemetry.AttributionUnplacedProcessesAttributes{Reason: k.reason}.Labels()
		case k.reason == "":
			l = telemetry.AttributionUpAttributes{Witness: k.witness}.Labels()
		default:
			l = telemetry.AttributionFaultsAttributes{Witness: k.witness, Reason: k.reason}.Labels()
		}
		x.witnesses[k] = l
	}
	return l
}

func (x *Self) clamp(name string) *metric.Labels {
	l := x.clamps[name]
	if l == nil {
		l = telemetry.ExporterRemainderClampsAttributes{Metric: name}.Labels()
		x.clamps[name] = l
	}
	return l
}
