package resolve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpumeter/gpumeter/gen/schema"
	"github.com/gpumeter/gpumeter/spell"
)

// compatRules makes one file of recording rules for each dialect of another exporter, which give its
// names and labels from ours.
func (r *resolver) compatRules(c *Compat) {
	before := len(r.faults)
	info, parts, owner := r.named(c.Rules.Pos, c.Rules.Devices), r.named(c.Rules.Pos, c.Rules.Parts), r.named(c.Rules.Pos, c.Rules.Owners)
	if len(r.faults) > before {
		return
	}
	for _, d := range c.Dialects {
		d := dialect{resolver: r, Compat: c, name: d.Name, brief: d.Brief, info: info, parts: parts, owner: owner, rules: *c.Rules, seen: map[string]*pending{}}
		d.file = &RuleFile{RuleFile: schema.RuleFile{
			Pos: c.Rules.Pos, Object: "compat-" + d.word("-"), Pack: "compat", Brief: "The names and labels of " + c.Title + ", from ours.",
			Note: strings.TrimSpace(d.brief) + " Numbers of a whole device stand on the device alone, and are not repeated on each of its parts.",
		}}
		if d.labels(c.Labels, d.name); d.replace == nil {
			d.labels(c.Labels, c.Dialects[0].Name)
		}
		for _, s := range c.Sections {
			d.labels(s.Answers, d.name)
		}
		group := &RuleGroup{RuleGroup: schema.RuleGroup{Pos: d.rules.Pos, Name: d.file.Object}} // one: what follows reads the labels
		d.file.Groups = append(d.file.Groups, group)
		d.devices(group)
		for _, s := range c.Sections {
			for _, a := range s.Answers {
				for _, f := range a.There {
					if f.Dialect == d.name {
						d.number(group, s, a, f)
					}
				}
			}
		}
		d.finish()
		r.model.Rules = append(r.model.Rules, d.file)
	}
}

// named finds one of the metrics the rules are made with; nil for no name.
func (r *resolver) named(at schema.Pos, name string) *Metric {
	m := r.otel[name]
	if m == nil && name != "" {
		var names []string
		for _, m := range r.model.Metrics {
			names = append(names, m.Name)
		}
		r.faults.Add(at, "rules: %q is no metric%s", name, spell.Suggest(name, names))
	}
	return m
}

// dialect makes the rules of one.
type dialect struct {
	*resolver
	*Compat
	name    string
	brief   string
	info    *Metric // of devices
	parts   *Metric // of their parts; nil: it tells of none
	owner   *Metric // of who holds them
	rules   schema.CompatRules
	file    *RuleFile
	replace []replaced
	seen    map[string]*pending // by name and labels
	pending []*pending
}

// pending is a rule that more answers may add to.
type pending struct {
	group  *RuleGroup
	record string
	labels []Text
	exprs  []string
}

// replaced is one label of theirs.
type replaced struct{ label, ours, after, regex, format string }

// word names the dialect: the system, and the dialect where it is another word.
func (d *dialect) word(sep string) string {
	if d.name == d.System {
		return d.System
	}
	return d.System + sep + d.name
}

// number makes the rule for one name of theirs, or says why there is none.
func (d *dialect) number(g *RuleGroup, s *Section, a *Answer, f *Foreign) {
	left := func(why string) {
		if line := f.Prom + ": " + why; !slices.Contains(d.file.Left, line) {
			d.file.Left = append(d.file.Left, line)
		}
	}
	text, m := f.Query, a.Metric
	switch {
	case a.Rule != "":
		text = a.Rule + d.onlyOf(a.Rule, s.Only) + factor(f.Scale)
	case m == nil:
		return // the page says why
	case text == "":
		left("nothing here has the same number.")
		return
	case len(m.Sources) == 0:
		left("nobody reads it yet.")
		return
	}
	if own := d.prom[f.Prom]; own != nil {
		left("is a name of ours.")
		return
	}
	if m != nil && len(s.Only) > 0 {
		some := *a
		some.Attributes = append(slices.Clone(a.Attributes), d.applicable(m, s.Only)...)
		text = query(&some, f.Scale)
	}
	expr, why := d.joined(a, text)
	if why != "" {
		left(why)
		return
	}
	var labels []Text
	for _, e := range f.Attributes {
		label, err := labelNamer.Build(e.Key)
		if err != nil {
			d.faults.Add(f.Pos, "%s: %v", f.Name, err)
		}
		labels = append(labels, Text{label, e.Value})
	}
	if at, fault := d.add(g, f.Prom, expr, labels), len(s.Only) == 0; at > 1 && fault {
		d.faults.Add(a.Pos, "%s: another answer gives %s too, and another number", a.what(), f.Prom)
	}
}

// onlyOf selects the series of a recording rule that a section is about, as far as its labels tell.
func (d *dialect) onlyOf(rule string, all schema.Map[string]) string {
	var out []string
	for _, e := range all {
		if x := d.attributes[e.Key]; x != nil && d.records[rule].Labels[x.Label] {
			out = append(out, x.Label+"="+strconv.Quote(e.Value))
		}
	}
	if out == nil {
		return ""
	}
	return "{" + strings.Join(out, ", ") + "}"
}

// applicable are those of the attributes that the metric has.
func (d *dialect) applicable(m *Metric, all schema.Map[string]) schema.Map[string] {
	var out schema.Map[string]
	for _, e := range all {
		if slices.ContainsFunc(append(m.Scope.AllAttributes(), m.Attributes...), func(x *Attribute) bool { return x.Key == e.Key }) {
			out = append(out, e)
		}
	}
	return out
}

// joined gives the series of a query their labels.
func (d *dialect) joined(a *Answer, query string) (expr, why string) {
	level, _, _ := strings.Cut(a.Rule, ":")
	whole := func(q, key string, parts bool) string {
		return fmt.Sprintf("%s * on (cluster, instance, %s) group_left () max by (cluster, instance, %[2]s) (%s)", d.identity(parts), key, q)
	}
	m := a.Metric
	switch {
	case level == "gpu":
		return d.drop("gpu_uuid", whole(query, "gpu_uuid", false)), ""
	case a.Rule != "":
		rec := d.records[a.Rule]
		if rec == nil {
			return "", ""
		}
		return d.theirs(query, func(name string) bool { return rec.Labels[name] }), ""
	case !slices.ContainsFunc(m.Scope.AllAttributes(), func(x *Attribute) bool { return x.Label == "gpu_uuid" }):
		return d.theirs(query, d.of(m)), ""
	}
	if more := d.several(a); more != "" {
		return "", "has several series of a device here, by " + more + "."
	}
	either := []string{d.drop("gpu_uuid", whole(query, "gpu_uuid", false))}
	if d.parts != nil {
		for _, sibling := range m.Everywhere() {
			if sibling != m && d.of(sibling)("gpu_partition_uuid") {
				either = append(either, d.drop("gpu_partition_uuid", whole(strings.ReplaceAll(query, m.Prom, sibling.Prom), "gpu_partition_uuid", true)))
			}
		}
	}
	return strings.Join(either, " or "), ""
}

// drop leaves out the label that was joined on, unless it is one of theirs.
func (d *dialect) drop(key, expr string) string {
	if slices.ContainsFunc(d.replace, func(x replaced) bool { return x.label == key }) {
		return expr
	}
	return "max without (" + key + ") (" + expr + ")"
}

// several is a label by which a device has more than one series of what is asked for.
func (d *dialect) several(a *Answer) string {
	info := d.of(d.info)
	for _, x := range append(a.Metric.Scope.AllAttributes(), a.Metric.Attributes...) {
		one := slices.ContainsFunc(a.Attributes, func(e schema.Named[string]) bool { return e.Key == x.Key })
		if !one && !info(x.Label) && !slices.Contains(a.over, x) && !slices.Contains(d.owner.Labels(), x.Label) {
			return x.Label
		}
	}
	return ""
}

// add takes an expression for a rule, and says how many there are for it now: what one answer gives
// does not count twice.
func (d *dialect) add(g *RuleGroup, record, expr string, labels []Text) int {
	key := fmt.Sprint(record, labels)
	p := d.seen[key]
	if p == nil {
		p = &pending{group: g, record: record, labels: labels}
		d.seen[key], d.pending = p, append(d.pending, p)
	}
	if !slices.Contains(p.exprs, expr) {
		p.exprs = append(p.exprs, expr)
	}
	if strings.Contains(record, ":") { // what follows is joined with it
		d.finish()
	}
	return len(p.exprs)
}

// finish makes the rules.
func (d *dialect) finish() {
	for _, p := range d.pending {
		text := strings.Join(p.exprs, " or ")
		rec := &Recording{Recording: schema.Recording{Pos: d.rules.Pos, Record: p.record, Expr: text}, Static: p.labels}
		rec.Expr, rec.Labels = d.expression(d.file, d.rules.Pos, "rule "+p.record, text)
		if rec.Expr == nil {
			continue
		}
		d.records[p.record] = rec
		p.group.Recordings = append(p.group.Recordings, rec)
	}
	d.pending = nil
}
