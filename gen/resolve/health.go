package resolve

import (
	"slices"
	"time"

	"github.com/gpumeter/gpumeter/gen/schema"
	"github.com/gpumeter/gpumeter/spell"
)

// healthTerm is the attribute whose members are the terms of the health score, and busyMetric what
// tells whether a device is at work.
const healthTerm, busyMetric = "gpu.health.term", "gpu.utilization"

// longestWindow is as far back as the exporter remembers what devices counted.
const longestWindow = 24 * time.Hour

// Health is what the health score of a device is made of.
type Health struct {
	schema.HealthFile
	Attribute *Attribute
	Terms     []*Term // one a member of it, in its order
}

// Term is one thing that speaks against the health of a device.
type Term struct {
	schema.Term
	GoName string // Go constant of the member
	Brief  string // of the member
	Span   time.Duration
	From   []*Reading
}

// Seconds is the length of the window.
func (t *Term) Seconds() int64 { return int64(t.Span / time.Second) }

// Reading is one metric a term is judged by.
type Reading struct {
	schema.Reading
	Metric      *Metric
	Below, Load *Metric // nil but for what must not be below another, while the device is at work
	GoLink      string  // Go constant of the sort of link, empty for a device
	Indexes     []string
	Least       float64 // 0 for what does not count
}

// health checks the table of terms.
func (r *resolver) health(f *schema.HealthFile) {
	out := &Health{HealthFile: *f, Attribute: r.attributes[healthTerm]}
	if out.Attribute == nil || !out.Attribute.Closed() {
		r.faults.Add(f.Pos, "no enum attribute %s in spec/attributes.yaml, whose members are the terms", healthTerm)
		return
	}
	ids, first := out.Attribute.MemberIDs(), map[string]schema.Pos{}
	for i, t := range f.Terms {
		at := slices.Index(ids, t.Term)
		switch before, twice := first[t.Term]; {
		case at < 0:
			r.faults.Add(t.Pos, "term %q is no member of %s%s", t.Term, healthTerm, spell.Suggest(t.Term, ids))
			continue
		case twice:
			r.faults.Add(t.Pos, "term %s: is there twice, first at %s", t.Term, before)
		case i > 0 && at < slices.Index(ids, f.Terms[i-1].Term):
			r.faults.Add(t.Pos, "term %s: stands after %s; terms stand in the order of %s", t.Term, f.Terms[i-1].Term, healthTerm)
		}
		first[t.Term] = t.Pos
		out.Terms = append(out.Terms, r.term(t, out.Attribute, at))
	}
	for _, m := range out.Attribute.Members {
		if _, ok := first[m.ID]; !ok {
			r.faults.Add(m.Pos, "%s: %s has no entry in %s", healthTerm, m.ID, f.File)
		}
	}
	for _, ident := range []string{"HealthRule", "HealthReading", "HealthRules"} {
		r.declare(f.Pos, "the table of health", ident)
	}
	r.model.Health = out
}

// term checks one term.
func (r *resolver) term(t schema.Term, a *Attribute, i int) *Term {
	bad := func(format string, args ...any) {
		r.faults.Add(t.Pos, "term "+t.Term+": "+format, args...)
	}
	out := &Term{Term: t, GoName: a.MemberName(i), Brief: a.Members[i].Brief}
	if !(t.Weight > 0 && t.Weight <= 1) { // so written that it holds for NaN
		bad("weight %v is not above 0 and at most 1", t.Weight)
	}
	checkBrief(t.Pos, "term "+t.Term+": why", t.Why, &r.faults)
	if t.Window != "" {
		var err error
		if out.Span, err = time.ParseDuration(t.Window); err != nil || out.Span%time.Second != 0 || out.Span <= 0 || out.Span > longestWindow {
			bad(`window %q is no duration of whole seconds, as "1h" or "5m", of at most %s`, t.Window, longestWindow)
		}
	}
	for _, x := range t.From {
		if reading := r.healthReading(x, t); reading != nil {
			out.From = append(out.From, reading)
		}
	}
	return out
}

// healthReading checks one metric a term is judged by, and returns nil when it can not be judged.
func (r *resolver) healthReading(x schema.Reading, t schema.Term) *Reading {
	bad := func(format string, args ...any) {
		r.faults.Add(x.Pos, "term "+t.Term+": "+x.Metric+": "+format, args...)
	}
	m := r.otel[x.Metric]
	switch {
	case m == nil:
		bad("there is no such metric%s", spell.Suggest(x.Metric, r.metricNames()))
		return nil
	case m.Scope.Name != "device" && m.Scope.Name != "link":
		bad("is of scope %s, and not of a device or a link", m.Scope.Name)
		return nil
	case len(m.Attributes) > 1 || !m.Closed():
		bad("wants a metric with one enum attribute at most")
		return nil
	case len(m.Sources) == 0:
		bad("nobody reads it")
	}
	out := &Reading{Reading: x, Metric: m, Indexes: indexes(m, x.Values, bad)}
	if sort := m.Scope.Sort(); sort != nil || x.Link != "" {
		r.checkLink(m, schema.FieldVersion{Link: x.Link}, bad)
		if sort != nil {
			out.GoLink = sort.NameOfMember(x.Link)
		}
	}
	counts := m.Instrument == "counter"
	switch {
	case x.Below != "":
		out.Below, out.Load = r.limit(x, m, bad), r.otel[busyMetric]
	case counts:
		if out.Least = x.Least; x.Least == 0 {
			out.Least = 1
		}
	case m.Instrument != "gauge" || m.Unit != "":
		bad("wants a counter, a state, or below")
	}
	if (counts || x.Below != "") != (t.Window != "") {
		bad("a window is for what counts or was seen, and a state has none")
	}
	if x.Least != 0 && !counts || x.Least < 0 {
		bad("least is by how much a counter rises")
	}
	if x.Fresh && !counts {
		bad("fresh is of counters")
	}
	if busy := x.Busy != 0; busy != (x.Below != "") || !(x.Busy >= 0 && x.Busy <= 1) {
		bad("busy, above 0 and at most 1, goes with below")
	}
	return out
}

// limit is the metric that another must not be below.
func (r *resolver) limit(x schema.Reading, m *Metric, bad func(string, ...any)) *Metric {
	limit := r.otel[x.Below]
	switch {
	case limit == nil:
		bad("below: there is no metric %s%s", x.Below, spell.Suggest(x.Below, r.metricNames()))
	case m.Scope.Name != "link" || limit.Scope != m.Scope || limit.Unit != m.Unit || limit == m ||
		m.Instrument == "counter" || len(m.Attributes)+len(limit.Attributes) > 0:
		bad("below: wants two numbers of a link in the same unit, without attributes")
	case r.otel[busyMetric] == nil:
		bad("below: no metric %s, which tells whether a device is at work", busyMetric)
	}
	return limit
}

// indexes are the Go index expressions of the series of a metric that count.
func indexes(m *Metric, values []string, bad func(string, ...any)) []string {
	if len(m.Attributes) == 0 {
		if len(values) > 0 {
			bad("values: it has no attribute")
		}
		return []string{""}
	}
	a := m.Attributes[0]
	if len(values) == 0 {
		values = a.MemberIDs()
	}
	var out []string
	for _, v := range values {
		name := a.NameOfMember(v)
		if name == "" {
			bad("%q is no member of %s%s", v, a.Key, spell.Suggest(v, a.MemberIDs()))
		}
		out = append(out, "["+name+"]")
	}
	return out
}

func (r *resolver) metricNames() []string {
	var names []string
	for _, m := range r.model.Metrics {
		names = append(names, m.Name)
	}
	return names
}
