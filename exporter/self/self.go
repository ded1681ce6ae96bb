// Package self fills in the exporter's own series from the health of a snapshot.
package self

import (
	"sync"
	"time"

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
	// Hold is for how long a new fault counter of a witness is exposed as 0, so that increase() in every
	// Prometheus server sees the step from 0; default 30 s.
	Hold time.Duration
}

// Self fills telemetry.Self. It keeps label sets from one snapshot to the next.
type Self struct {
	cfg  Config
	info []metric.Keyed

	mu      sync.Mutex
	sources map[string]sourceLabels
	faults  map[snapshot.Fault]*metric.Labels // by Fault with Count 0

	// Only Stage, which runs once at a time, touches these.
	target    target
	witnesses map[asked]*metric.Labels
	clamps    map[string]*metric.Labels // by metric
	held      map[asked]*held
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
	if cfg.Hold == 0 {
		cfg.Hold = 30 * time.Second
	}
	if cfg.StateFaults == nil {
		cfg.StateFaults = func() uint64 { return 0 }
	}
	info := metric.Keyed{Labels: telemetry.ExporterBuildInfoAttributes{Version: b.Version, Revision: b.Revision, GoVersion: b.GoVersion}.Labels()}
	info.Value.Set(1)
	return &Self{
		cfg: cfg, info: []metric.Keyed{info}, sources: map[string]sourceLabels{}, faults: map[snapshot.Fault]*metric.Labels{},
		witnesses: map[asked]*metric.Labels{}, clamps: map[string]*metric.Labels{}, held: map[asked]*held{},
	}
}

// Stage is the Run of a snapshot.Stage.
func (x *Self) Stage(s *snapshot.Snapshot) {
	x.reading(s)
	e := &s.Self.Exporter
	if x.cfg.Target != nil {
		s.Self.Target.Info = x.target.tell(x.cfg.Target())
	}
	e.StateFaults.Set(float64(x.cfg.StateFaults()))
	if x.cfg.Downtime != nil {
		if seconds, known := x.cfg.Downtime(); known {
			e.Downtime.Set(seconds)
		}
	}
	x.attribution(s)
}

// Partial is the Partial of a snapshot.Stage: source health and read faults are current, all else is that of
// the last complete snapshot.
func (x *Self) Partial(s, last *snapshot.Snapshot) {
	if last != nil {
		s.Self = last.Self
	}
	x.reading(s)
}

// reading fills in source health, read durations and read faults. It is safe for concurrent use and does not wait.
func (x *Self) reading(s *snapshot.Snapshot) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := &s.Self.Exporter
	e.BuildInfo = x.info
	e.Reads.Set(float64(s.Health.Reads))
	present := 0
	for i := range s.Devices {
		if up, _ := s.Devices[i].Read.Presence.Up.Get(); up == 1 {
			present++
		}
	}
	e.DevicesExpected.Set(float64(len(s.Devices)))
	e.DevicesPresent.Set(float64(present))
	e.SourceDevices, e.SourceState, e.ReadDuration, e.ReadFaults = nil, nil, nil, nil // not those of another snapshot
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
