package snapshot

import (
	"cmp"
	"slices"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// ledger counts what happened while reading, since the exporter started.
type ledger struct {
	reads     uint64
	durations map[string]*metric.Histogram
	faults    map[Fault]uint64 // by Fault with Count 0
	born      map[Fault]uint64 // the round in which each was first met
}

func newLedger() ledger {
	return ledger{durations: map[string]*metric.Histogram{}, faults: map[Fault]uint64{}, born: map[Fault]uint64{}}
}

// book counts one finished round.
func (l *ledger) book(slots []slot) {
	l.reads++
	for _, s := range slots {
		src, got := s.worker.source, s.reading
		if got.why != nil && got.why.Fault {
			l.fault(Fault{Source: src, Metric: "*", Reason: got.why.Text})
		}
		if got.took > 0 {
			if l.durations[src] == nil {
				l.durations[src] = metric.NewHistogram(telemetry.ExporterReadDurationBuckets)
			}
			l.durations[src].Observe(got.took.Seconds())
		}
		if got.why != nil {
			continue
		}
		if got.device != nil {
			bookFaults(l, src, telemetry.DeviceFamilies, got.device)
		}
		for i := range got.served {
			e := &got.served[i]
			if e.why == nil {
				bookFaults(l, src, telemetry.EngineFamilies, &e.Read)
			} else if e.why.Fault {
				l.fault(Fault{Source: src, Metric: "*", Reason: e.why.Text})
			}
		}
		if got.host != nil {
			bookFaults(l, src, telemetry.HostFamilies, got.host)
		}
	}
}

func bookFaults[T any](l *ledger, src string, families []telemetry.Family[T], read *T) {
	for i := range families {
		f := &families[i]
		for _, row := range f.Rows {
			if why := row(read).Why(); why != nil && why.Fault {
				l.fault(Fault{Source: src, Metric: f.Desc.Name, Reason: why.Text})
			}
		}
	}
}

func (l *ledger) fault(f Fault) {
	if l.faults[f] == 0 {
		l.born[f] = l.reads
	}
	l.faults[f]++
}

// health is the count so far. A sort of fault is 0 in the picture that first has it, so that
// increase() sees the step.
func (l *ledger) health() Health {
	h := Health{Reads: l.reads, Faults: make([]Fault, 0, len(l.faults))}
	for f, n := range l.faults {
		if l.born[f] != l.reads {
			f.Count = n
		}
		h.Faults = append(h.Faults, f)
	}
	slices.SortFunc(h.Faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Reason, b.Reason))
	})
	return h
}

// duration is a copy of a source's histogram, nil when it has not been read.
func (l *ledger) duration(source string) *metric.Histogram {
	if h := l.durations[source]; h != nil {
		return h.Clone()
	}
	return nil
}
