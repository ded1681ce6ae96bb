package snapshot

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// ledger counts reads and faults since the exporter started. It is safe for concurrent use.
type ledger struct {
	hold time.Duration // for which a new fault counter is exposed as 0

	mu        sync.Mutex
	reads     uint64
	durations map[string]*metric.Histogram // by source
	faults    map[Fault]*tally             // by Fault with Count 0
}

// tally is one fault counter.
type tally struct {
	count uint64
	first time.Time // when the fault was first counted
	live  bool      // the hold is over: the count is exposed
}

func newLedger(hold time.Duration) *ledger {
	return &ledger{hold: hold, durations: map[string]*metric.Histogram{}, faults: map[Fault]*tally{}}
}

// book counts one finished round. A fault counter goes live here, and so for all readers at once.
func (l *ledger) book(taken time.Time, slots []slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	for _, s := range slots {
		l.bookSlot(taken, s.worker.source, &s.reading)
	}
	for _, t := range l.faults {
		t.live = t.live || taken.Sub(t.first) >= l.hold
	}
}

// bookSlot counts the faults of one worker's answer. The lock is held.
func (l *ledger) bookSlot(taken time.Time, source string, got *reading) {
	whole := func(why *metric.Reason) {
		if why.Fault {
			l.count(taken, Fault{Source: source, Metric: "*", Reason: why.Text})
		}
	}
	one := func(desc *metric.Desc, r telemetry.Reading) {
		if r.Histogram != nil {
			return
		}
		if why := r.Value.Why(); why != nil && why.Fault {
			l.count(taken, Fault{Source: source, Metric: desc.Name, Reason: why.Text})
		}
	}
	if got.why != nil {
		whole(got.why)
		return
	}
	if got.device != nil {
		got.device.Each(one)
	}
	for i := range got.served {
		if e := &got.served[i]; e.why == nil {
			e.Read.Each(one)
		} else {
			whole(e.why)
		}
	}
	if got.host != nil {
		got.host.Each(one)
	}
}

// fault counts a fault that is no reading's, such as a device that cannot be read at all.
func (l *ledger) fault(now time.Time, f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(now, f)
}

// count adds one to a fault counter. The lock is held.
func (l *ledger) count(now time.Time, f Fault) {
	t := l.faults[f]
	if t == nil {
		t = &tally{first: now}
		l.faults[f] = t
	}
	t.count++
}

// observe records how long a read took, also when its answer came after the deadline.
func (l *ledger) observe(source string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.durations[source]
	if h == nil {
		h = metric.NewHistogram(telemetry.ExporterReadDurationBuckets)
		l.durations[source] = h
	}
	h.Observe(took.Seconds())
}

// health returns the counts so far. A fault counter stays 0 during its hold, so that increase() in
// every Prometheus server sees the step from 0, however many servers scrape.
func (l *ledger) health() Health {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := Health{Reads: l.reads, Faults: make([]Fault, 0, len(l.faults))}
	for f, t := range l.faults {
		if t.live {
			f.Count = t.count
		}
		h.Faults = append(h.Faults, f)
	}
	slices.SortFunc(h.Faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Reason, b.Reason))
	})
	return h
}

// duration returns a copy of a source's histogram, nil while none of its reads has ended.
func (l *ledger) duration(source string) *metric.Histogram {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.durations[source]; h != nil {
		return h.Clone()
	}
	return nil
}
