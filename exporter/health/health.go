// Package health judges how healthy each device is, and says why.
package health

import (
	"cmp"
	"math"
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Judge fills telemetry.Health. It remembers what devices counted for as long as the terms of the
// score look back.
type Judge struct {
	mu    sync.Mutex
	last  time.Time     // of the picture before
	clock time.Duration // since the exporter started; it never goes back
	cases map[string]*record
}

// record is what is remembered of one device.
type record struct{ counts map[place]*count }

// place is a reading that looks back: of a term, by its number there, and of a link by the link's.
type place struct {
	term, reading int
	link          string
}

// New returns a Judge of an exporter that started then.
func New(started time.Time) *Judge { return &Judge{last: started, cases: map[string]*record{}} }

// Stage is a snapshot.Stage. From a picture composed for a scrape that could not wait nothing is
// remembered.
func (j *Judge) Stage(s *snapshot.Snapshot) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.clock + max(s.Taken.Sub(j.last), 0)
	met := make(map[string]*record, len(s.Devices))
	for i := range s.Devices {
		d := &s.Devices[i]
		key := cmp.Or(d.Identity.UUID, d.Identity.PCI)
		r := j.cases[key]
		if r == nil || key == "" {
			r = &record{counts: map[place]*count{}}
		}
		met[key] = r
		look{r, &d.Read, now, !s.Partial}.judge()
	}
	if !s.Partial {
		j.last, j.clock, j.cases = s.Taken, now, met
	}
}

// look is one look at a device.
type look struct {
	record *record
	read   *telemetry.Device
	now    time.Duration
	keep   bool // what is seen is remembered
}

// judge tells each term, and the score.
func (l look) judge() {
	up, told := l.read.Presence.Up.Get()
	silent := told && up == 0
	out, taken, known := &l.read.Health, 0., false
	for i := range telemetry.HealthRules {
		rule, penalty := &telemetry.HealthRules[i], &out.Penalty[i]
		switch v := l.term(i, rule); {
		case v.holds:
			penalty.Set(rule.Weight)
			taken += rule.Weight
			known = true
		case v.why != nil:
			penalty.Fail(v.why)
		case silent: // one that says nothing must not look healthy
			penalty.Fail(metric.NoData)
		default:
			penalty.Set(0)
			known = true
		}
	}
	if known {
		const digits = 1e9 // sums of the weights are no binary fractions
		out.Score.Set(math.Round(max(0, 1-taken)*digits) / digits)
	} else {
		out.Score.Fail(metric.NoData)
	}
}

// verdict is whether a term holds, or why that is not known.
type verdict struct {
	holds bool
	why   *metric.Reason // nil: it is known
}

// term judges one term: it holds when one of its readings says so, and does not when at least one is
// told and all that are told say no.
func (l look) term(i int, rule *telemetry.HealthRule) verdict {
	var out verdict
	told := false
	add := func(v verdict) {
		out.holds = out.holds || v.holds
		switch {
		case v.why == nil:
			told = true
		case out.why == nil || lacks(out.why):
			out.why = v.why
		}
	}
	for k := range rule.From {
		from := &rule.From[k]
		if from.Device != nil {
			add(l.reading(place{i, k, ""}, rule, from, *from.Device(l.read)))
			continue
		}
		for n := range l.read.Links {
			part := &l.read.Links[n]
			if part.Labels.Get("gpu_link_type") != from.Sort.String() {
				continue
			}
			at := place{i, k, part.Labels.Get("gpu_link_id")}
			if from.Below != nil {
				add(l.below(at, rule, from, &part.Read))
			} else {
				add(l.reading(at, rule, from, *from.Link(&part.Read)))
			}
		}
	}
	switch {
	case out.holds || told && lacks(out.why):
		out.why = nil
	case !told && out.why == nil: // there is no such link
		out.why = metric.Unsupported
	}
	return out
}

// lacks says whether a reading is not there because there never is one.
func lacks(why *metric.Reason) bool {
	return why == metric.Unsupported || why == metric.Unread || why == metric.Denied
}

// reading judges a state or a counter.
func (l look) reading(at place, rule *telemetry.HealthRule, from *telemetry.HealthReading, v metric.Value) verdict {
	n, told := v.Get()
	if from.Least == 0 {
		return verdict{told && n == 1, v.Why()}
	}
	c := l.count(at)
	if told {
		c.see(n, l.now, rule.Window, from.Fresh)
	}
	switch {
	case c.within(l.now, rule.Window) >= from.Least:
		return verdict{holds: true}
	case !told:
		return verdict{why: v.Why()}
	case !c.watched(l.now, rule.Window):
		return verdict{why: metric.NoData}
	}
	return verdict{}
}

// below judges a number of a link that must not be below another while the device is at work. At
// rest it may be, and then what was last seen under load counts.
func (l look) below(at place, rule *telemetry.HealthRule, from *telemetry.HealthReading, link *telemetry.Link) verdict {
	v, limit := *from.Link(link), *from.Below(link)
	n, told := v.Get()
	most, limited := limit.Get()
	busy, _ := l.read.Utilization.Utilization.Get()
	c := l.count(at)
	switch {
	case !told || !limited:
	case n >= most:
		c.rises = nil
		return verdict{}
	case busy >= from.Busy:
		c.rises = []rise{{from: l.now, at: l.now, more: 1}}
	}
	switch {
	case c.within(l.now, rule.Window) > 0:
		return verdict{holds: true}
	case !told:
		return verdict{why: v.Why()}
	case !limited:
		return verdict{why: limit.Why()}
	}
	return verdict{why: metric.NoData}
}

// count returns what is remembered of a reading, for the caller to add to.
func (l look) count(at place) *count {
	c := l.record.counts[at]
	switch {
	case c == nil:
		c = new(count)
		if l.keep {
			l.record.counts[at] = c
		}
	case !l.keep:
		c = c.clone()
	}
	return c
}
