package sim

import (
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

const (
	mega    = 1e6
	milli   = 1e-3
	percent = 1e-2
)

// tell records a number, or that the board does not have it.
func tell(v *metric.Value, has bool, n float64) {
	if has {
		v.Set(n)
	} else {
		v.Fail(metric.Unsupported)
	}
}

// one is 1 for what holds.
func one(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// xid reports the codes seen so far, in slices of its own: what is read is kept by others. A code is 0 for
// the hold, so that increase() sees the step at every scraper.
func (d *device) xid(out *telemetry.XID) {
	if d.board.vendor != nvidia {
		for i := range out.Events {
			out.Events[i].Fail(metric.Unsupported)
		}
		out.Errors, out.LastSeenTimestamp = nil, nil
		return
	}
	var asked [len(out.Events)]int64
	var seen []metric.Keyed // both lists, one after the other
	n, now := 0, d.now()
	for i, labels := range d.faults.labels {
		count := d.faults.count(i, d.physics.tick)
		if labels == nil || count == 0 {
			continue
		}
		if seen == nil {
			seen = make([]metric.Keyed, 2*len(faultSorts))
		}
		last := d.loaded.Add(time.Duration(d.faults.seen(i, d.physics.tick)) * time.Second)
		seen[n].Labels, seen[len(faultSorts)+n].Labels = labels, labels
		if d.shown[i].IsZero() {
			d.shown[i] = now
		}
		d.live[i] = d.live[i] || now.Sub(d.shown[i]) >= d.hold // and stays so when the clock is set back
		seen[n].Value.Set(float64(count) * one(d.live[i]))
		seen[len(faultSorts)+n].Value.Set(float64(last.UnixMilli()) * milli)
		asked[telemetry.XIDActionOf(uint64(faultSorts[i].xid))] += count
		n++
	}
	out.Errors, out.LastSeenTimestamp = nil, nil
	if seen != nil {
		out.Errors, out.LastSeenTimestamp = seen[:n:n], seen[len(faultSorts):][:n:n]
	}
	for i, count := range asked {
		out.Events[i].Set(float64(count))
	}
}
