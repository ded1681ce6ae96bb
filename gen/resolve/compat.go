package resolve

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/gpumeter/gpumeter/gen/schema"
	"github.com/gpumeter/gpumeter/spell"
)

// Compat is another exporter and our answer to every name of it.
type Compat struct {
	schema.Compat
	Labels   []*Answer
	Sections []*Section
}

// Section is a group of another exporter's fields.
type Section struct {
	schema.Section
	Answers []*Answer
}

// Answer is what we have for a field of another exporter.
type Answer struct {
	schema.Answer
	There     []*Foreign
	Metric    *Metric    // nil when the answer is none
	Attribute *Attribute // nil when the answer is none
	From      []*Metric
	over      []*Attribute
}

// Foreign is a name another exporter exposes.
type Foreign struct {
	schema.Foreign
	Prom  string // what Prometheus calls it
	Query string // what gives the same number here, "" when nothing does
}

// ruleName is level:metric:operation.
var ruleName = regexp.MustCompile(`^[a-z][a-z0-9_]*(:[a-z][a-z0-9_]*){2}$`)

// compat finds what another exporter's answers name, and refuses what is not there.
func (r *resolver) compat(c schema.Compat) {
	checkBrief(c.Pos, c.System, c.Brief, &r.faults)
	out := &Compat{Compat: c}
	before := len(r.faults)
	names := r.dialects(c)
	seen := map[string]schema.Pos{}
	for _, a := range c.Labels {
		for i := range a.There {
			a.There[i].Type = "label"
		}
		out.Labels = append(out.Labels, r.answer(a, c, names, "labels", seen))
	}
	for _, s := range c.Sections {
		checkBrief(s.Pos, s.Name, s.Brief, &r.faults)
		if at, twice := seen[s.Name]; twice {
			r.faults.Add(s.Pos, "section %s is there twice, first at %s", s.Name, at)
		}
		seen[s.Name] = s.Pos
		section := &Section{Section: s}
		for _, a := range s.Answers {
			section.Answers = append(section.Answers, r.answer(a, c, names, s.Name, seen))
		}
		if s.Rest != nil {
			r.reason(s.Rest.Pos, "the rest of "+s.Name, s.Rest.Planned, s.Rest.None)
		} else if len(s.Answers) == 0 {
			r.faults.Add(s.Pos, "section %s: no answers and no rest", s.Name)
		}
		out.Sections = append(out.Sections, section)
	}
	if len(r.faults) == before {
		r.agree(out)
	}
	if len(r.faults) == before && c.Rules != nil {
		r.compatRules(out)
	}
	r.model.Compats = append(r.model.Compats, out)
}

func (r *resolver) dialects(c schema.Compat) []string {
	var names []string
	for _, d := range c.Dialects {
		checkBrief(d.Pos, "dialect "+d.Name, d.Brief, &r.faults)
		if slices.Contains(names, d.Name) {
			r.faults.Add(d.Pos, "dialect %s is there twice", d.Name)
		}
		names = append(names, d.Name)
	}
	return names
}

// answer resolves one answer; seen holds what was answered before it, and where.
func (r *resolver) answer(a schema.Answer, c schema.Compat, dialects []string, section string, seen map[string]schema.Pos) *Answer {
	out := &Answer{Answer: a}
	once := func(at schema.Pos, what, key string) {
		if first, twice := seen[section+"\n"+key]; twice {
			r.faults.Add(at, "%s: is answered twice, first at %s", what, first)
		}
		seen[section+"\n"+key] = at
	}
	for _, f := range a.Fields {
		once(a.Pos, f, f)
	}
	for _, f := range a.There {
		if f.Dialect == "" {
			f.Dialect = dialects[0]
		} else if !slices.Contains(dialects, f.Dialect) {
			r.faults.Add(f.Pos, "%s: %q is no dialect%s", f.Name, f.Dialect, spell.Suggest(f.Dialect, dialects))
		}
		if len(a.Fields) == 0 {
			once(f.Pos, f.Name, fmt.Sprintln(f.Dialect, f.Name, f.Attributes))
		}
		x := &Foreign{Foreign: f, Prom: f.Name}
		if c.Names == "otel" {
			x.Prom = r.foreignName(f)
		}
		out.There = append(out.There, x)
	}
	if len(a.Fields) == 0 && len(a.There) == 0 {
		r.faults.Add(a.Pos, "section %s: an answer wants fields or names there", section)
	}
	r.kind(out)
	return out
}

// foreignName is what Prometheus makes of an OpenTelemetry name that is not ours.
func (r *resolver) foreignName(f schema.Foreign) string {
	var name string
	var err error
	if f.Type == "label" {
		name, err = labelNamer.Build(f.Name)
	} else {
		name, _, err = promNames(schema.Metric{Name: f.Name, Unit: f.Unit, Instrument: orGauge(f.Type)})
	}
	if err != nil {
		r.faults.Add(f.Pos, "%s: %v", f.Name, err)
	}
	return name
}

func orGauge(kind string) string {
	if kind == "" {
		return "gauge"
	}
	return kind
}

// kind checks that the answer is of one sort and has no more than the sort needs.
func (r *resolver) kind(a *Answer) {
	bad := func(format string, args ...any) { r.faults.Add(a.Pos, a.what()+": "+format, args...) }
	var sorts []string
	for _, x := range []struct{ key, value string }{
		{"metric", a.Answer.Metric}, {"rule", a.Rule}, {"attribute", a.Answer.Attribute}, {"label", a.Label}, {"planned", a.Planned}, {"none", a.None},
	} {
		if x.value != "" {
			sorts = append(sorts, x.key)
		}
	}
	if len(sorts) != 1 {
		bad("wants exactly one of metric, rule, attribute, label, planned and none, has %d", len(sorts))
		return
	}
	if sorts[0] != "metric" && (len(a.Attributes) > 0 || a.As != "" || len(a.Over) > 0) {
		bad("attributes, as and over belong to a metric")
	}
	if sorts[0] != "rule" && len(a.Answer.From) > 0 {
		bad("from belongs to a rule")
	}
	switch sorts[0] {
	case "metric":
		if a.Metric = r.known(a, a.Answer.Metric); a.Metric != nil {
			r.series(a)
			r.reading(a)
		}
	case "rule":
		if !ruleName.MatchString(a.Rule) {
			bad("rule %q is not level:metric:operation", a.Rule)
		} else if r.records[a.Rule] == nil {
			bad("there is no recording rule %s%s", a.Rule, spell.Suggest(a.Rule, slices.Sorted(maps.Keys(r.records))))
		}
		for _, name := range a.Answer.From {
			if m := r.known(a, name); m != nil {
				a.From = append(a.From, m)
			}
		}
	case "label":
	case "attribute":
		if found := r.find(a.Pos, a.what(), []string{a.Answer.Attribute}); len(found) > 0 {
			a.Attribute = found[0]
		}
	default:
		r.reason(a.Pos, a.what(), a.Planned, a.None)
	}
}

// what names the answer in messages.
func (a *Answer) what() string {
	if len(a.Fields) > 0 {
		return a.Fields[0]
	}
	if len(a.There) > 0 {
		return a.There[0].Name
	}
	return "answer"
}

// reason wants one sentence, of what is to come or of why not.
func (r *resolver) reason(at schema.Pos, what, planned, none string) {
	if (planned == "") == (none == "") {
		r.faults.Add(at, "%s: wants exactly one of planned and none", what)
		return
	}
	checkBrief(at, what, planned+none, &r.faults)
}

// known finds a metric by name.
func (r *resolver) known(a *Answer, name string) *Metric {
	m := r.otel[name]
	if m == nil {
		var names []string
		for _, x := range r.model.Metrics {
			names = append(names, x.Name)
		}
		r.faults.Add(a.Pos, "%s: %q is no metric%s", a.what(), name, spell.Suggest(name, names))
	}
	return m
}

// series checks that the metric has the series the answer chooses.
func (r *resolver) series(a *Answer) {
	m := a.Metric
	all := slices.Concat(m.Scope.AllAttributes(), m.Attributes)
	var keys []string
	for _, x := range all {
		keys = append(keys, x.Key)
	}
	find := func(at schema.Pos, key string) *Attribute {
		i := slices.Index(keys, key)
		if i < 0 {
			r.faults.Add(at, "%s: %s has no attribute %q%s", a.what(), m.Name, key, spell.Suggest(key, keys))
			return nil
		}
		return all[i]
	}
	for _, e := range a.Attributes {
		x := find(e.Pos, e.Key)
		if x == nil || !x.Closed() {
			continue
		}
		ids := x.MemberIDs()
		if !slices.Contains(ids, e.Value) {
			r.faults.Add(e.Pos, "%s: %s has no member %q%s", a.what(), e.Key, e.Value, spell.Suggest(e.Value, ids))
		}
	}
	if len(a.Over) > 0 && m.Instrument == "histogram" {
		r.faults.Add(a.Pos, "%s: a sum over quantiles or means of %s means nothing", a.what(), m.Name)
	}
	for _, key := range a.Over {
		x := find(a.Pos, key)
		if x == nil {
			continue
		}
		if !x.IsAdditive() {
			r.faults.Add(a.Pos, "%s: a sum over %s means nothing", a.what(), key)
		}
		a.over = append(a.over, x)
	}
}

// reading checks what of the metric is taken, and writes the queries.
func (r *resolver) reading(a *Answer) {
	bad := func(format string, args ...any) { r.faults.Add(a.Pos, a.what()+": "+format, args...) }
	histogram, counter := a.Metric.Instrument == "histogram", a.Metric.Instrument == "counter"
	switch a.As {
	case "differs":
		if a.Note == "" {
			bad("differs, and no note says how")
		}
	case "rate":
		if !counter {
			bad("the rate of %s, which is no counter", a.Metric.Name)
		}
	case "":
		if histogram {
			bad("%s is a histogram; say what of it", a.Metric.Name)
		}
	default:
		if !histogram {
			bad("the %s of %s, which is no histogram", a.As, a.Metric.Name)
		}
	}
	for _, f := range a.There {
		if !(f.Scale >= 0 && f.Scale < 1e18) { // so written that it holds for NaN
			r.faults.Add(f.Pos, "%s: scale %v is no positive number", f.Name, f.Scale)
		}
		f.Query = query(a, f.Scale)
	}
}
