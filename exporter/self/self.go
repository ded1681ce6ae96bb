// Package self fills in the exporter's own series from the health of a snapshot.
package self

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Build says what was built.
type Build struct{ Version, Revision, GoVersion string }

// Config is what a Self tells beside the health of the snapshot.
type Config struct {
	Build       Build
	StateFaults func() uint64 // nil: there are none
	Target      func() Target // nil: nothing is known of it
	// Downtime tells for how many seconds the exporter did not run, and whether that is known; nil: it is not.
	Downtime func() (float64, bool)
	// Attribution tells how finding out whose work it is went; nil: nobody is asked.
	Attribution func(*snapshot.Snapshot) Attribution
}

// Self fills telemetry.Self. It keeps label sets from one snapshot to the next.
type Self struct {
	cfg     Config
	info    []metric.Keyed
	target  target
	sources map[string]sourceLabels
	faults  map[snapshot.Fault]*metric.Labels // by Fault with Count 0

	witnesses map[asked]*metric.Labels
	clamps    map[string]*metric.Labels // by metric
}

type sourceLabels struct {
	source *metric.Labels
	states [len(states)]*metric.Labels
}

var states = [...]telemetry.SourceState{
	telemetry.SourceStateServing, telemetry.SourceStateAbsent, telemetry.SourceStateFailed, telemetry.SourceStateUnbuilt,
	telemetry.SourceStateReleased,
}

// New returns a Self.
func New(cfg Config) *Self {
	b := cfg.Build
	if cfg.StateFaults == nil {
		cfg.StateFaults = func() uint64 { return 0 }
	}
	info := metric.Keyed{Labels: telemetry.ExporterBuildInfoAttributes{Version: b.Version, Revision: b.Revision, GoVersion: b.GoVersion}.Labels()}
	info.Value.Set(1)
	return &Self{
		cfg: cfg, info: []metric.Keyed{info}, sources: map[string]sourceLabels{}, faults: map[snapshot.Fault]*metric.Labels{},
		witnesses: map[asked]*metric.Labels{}, clamps: map[string]*metric.Labels{},
	}
}

// Stage is a snapshot.Stage.
func (x *Self) Stage(s *snapshot.Snapshot) {
	e := &s.Self.Exporter
	e.BuildInfo = x.info
	if x.cfg.Target != nil {
		s.Self.Target.Info = x.target.tell(x.cfg.Target())
	}
	e.Reads.Set(float64(s.Health.Reads))
	e.StateFaults.Set(float64(x.cfg.StateFaults()))
	present := 0
	for i := range s.Devices {
		if up, _ := s.Devices[i].Read.Presence.Up.Get(); up == 1 {
			present++
		}
	}
	e.DevicesExpected.Set(float64(len(s.Devices)))
	e.DevicesPresent.Set(float64(present))
	for _, src := range s.Health.Sources {
		labels := x.source(src.Name)
		e.SourceDevices = append(e.SourceDevices, keyed(labels.source, float64(src.Devices)))
		for i, state := range states {
			k := metric.Keyed{Labels: labels.states[i]}
			k.Value.SetBool(src.State == state)
			e.SourceState = append(e.SourceState, k)
		}
		if src.Duration != nil {
			e.ReadDuration = append(e.ReadDuration, telemetry.KeyedHistogram{Labels: labels.source, Histogram: src.Duration})
		}
	}
	for _, f := range s.Health.Faults {
		e.ReadFaults = append(e.ReadFaults, keyed(x.fault(f), float64(f.Count)))
	}
	if x.cfg.Downtime != nil {
		if seconds, known := x.cfg.Downtime(); known {
			e.Downtime.Set(seconds)
		}
	}
	x.attribution(s)
}

func keyed(l *metric.Labels, n float64) metric.Keyed {
	k := metric.Keyed{Labels: l}
	k.Value.Set(n)
	return k
}

func (x *Self) source(name string) sourceLabels {
	l, ok := x.sources[name]
	if !ok {
		l.source = telemetry.ExporterSourceDevicesAttributes{Source: name}.Labels()
		for i, state := range states {
			l.states[i] = telemetry.ExporterSourceStateAttributes{Source: name, SourceState: state}.Labels()
		}
		x.sources[name] = l
	}
	return l
}

func (x *Self) fault(f snapshot.Fault) *metric.Labels {
	f.Count = 0
	l, ok := x.faults[f]
	if !ok {
		l = telemetry.ExporterReadFaultsAttributes{Source: f.Source, Metric: f.Metric, Reason: f.Reason}.Labels()
		x.faults[f] = l
	}
	return l
}
