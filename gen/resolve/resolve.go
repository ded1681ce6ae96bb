package resolve

import (
	"strings"

	"github.com/gpumeter/gpumeter/gen/schema"
	"github.com/gpumeter/gpumeter/spell"
)

// Resolve names and checks everything, and reports all faults at once.
func Resolve(spec *schema.Spec) (*Model, error) {
	r := &resolver{
		model:      new(Model),
		scopes:     map[string]*Scope{},
		sources:    map[string]*Source{},
		attributes: map[string]*Attribute{},
		otel:       map[string]*Metric{},
		prom:       map[string]*Metric{},
		idents:     map[string]string{},
		records:    map[string]*Recording{},
		alerts:     map[string]schema.Pos{},
	}
	for _, a := range spec.Attributes {
		r.attribute(a)
	}
	for _, s := range spec.Sources {
		r.source(s)
	}
	for _, s := range spec.Scopes {
		r.scope(s)
	}
	for _, g := range spec.Groups {
		r.group(g)
	}
	for _, s := range r.model.Scopes {
		r.model.Metrics = append(r.model.Metrics, s.Metrics...)
	}
	if spec.XIDs != nil {
		r.xids(spec.XIDs)
	}
	if spec.Health != nil {
		r.health(spec.Health)
	}
	r.renamed()
	r.unused()
	if len(r.faults) == 0 { // else one misspelt metric would be found in every answer, too
		for _, f := range ordered(spec.Rules) {
			r.rules(f)
		}
		for _, c := range spec.Compats { // their answers name recording rules, too
			r.compat(c)
		}
		r.dashboards(spec.Vocabulary, spec.Dashboards)
	}
	if err := r.faults.Err(); err != nil {
		return nil, err
	}
	return r.model, nil
}

type resolver struct {
	model      *Model
	faults     schema.Faults
	scopes     map[string]*Scope
	sources    map[string]*Source
	attributes map[string]*Attribute
	otel       map[string]*Metric // by OpenTelemetry name
	prom       map[string]*Metric // by every name a series or a family of it bears
	idents     map[string]string  // Go identifiers of the generated package, and what bears them
	records    map[string]*Recording
	alerts     map[string]schema.Pos
}

func (r *resolver) group(g schema.Group) {
	if !groupName.MatchString(g.Group) {
		r.faults.Add(g.Pos, "group %q: a name is lower-case words joined by dashes", g.Group)
	}
	checkBrief(g.Pos, "group "+g.Group, g.Brief, &r.faults)
	out := &Group{Group: g, GoName: camel(g.Group)}
	r.declare(g.Pos, "group "+g.Group, out.GoName)
	for _, name := range g.Scopes {
		s := r.scopes[name]
		if s == nil {
			r.faults.Add(g.Pos, "group %s: scope %q is not in spec/scopes.yaml%s", g.Group, name, spell.Suggest(name, r.scopeNames()))
			continue
		}
		if len(g.Scopes) > 1 && len(s.Prefixes) != 1 {
			r.faults.Add(g.Pos, "group %s: scope %s has several prefixes, so it cannot share a group", g.Group, name)
		}
		out.Scopes = append(out.Scopes, s)
		s.Groups = append(s.Groups, out)
	}
	r.model.Groups = append(r.model.Groups, out)
	if len(out.Scopes) == 0 {
		return
	}
	for _, m := range g.Metrics {
		r.entry(m, out)
	}
}

// entry makes one metric per scope of the group from what is written once.
func (r *resolver) entry(written schema.Metric, g *Group) {
	before := len(r.faults)
	checkMetric(written, &r.faults)
	sound := len(r.faults) == before
	prefix := r.prefix(written, g.Scopes[0])
	field := goField(written.Name, prefix, g.Group.Group)
	attributes := r.find(written.Pos, written.Name, written.Attributes)
	for _, other := range g.Metrics {
		if other.GoField == field {
			r.faults.Add(written.Pos, "%s: the same field %s.%s as %s at %s", written.Name, g.GoName, field, other.Name, other.Pos)
		}
	}
	for i, s := range g.Scopes {
		m := &Metric{Metric: written, Group: g, Scope: s, GoField: field, Attributes: attributes}
		if i > 0 {
			m.Name = s.Prefixes[0] + strings.TrimPrefix(written.Name, prefix)
			m.Semconv = nil // official metrics are of whole things; a part's would be added to its whole's
		}
		r.checkLabels(m)
		if sound {
			r.checkTwin(m)
		}
		r.claim(m, sound)
		s.Metrics = append(s.Metrics, m)
		for _, ref := range m.Sources {
			if src := r.sources[ref.Key]; src != nil {
				src.Metrics = append(src.Metrics, m)
			}
			if i == 0 {
				r.checkRef(m, ref)
			}
		}
		if i == 0 {
			g.Metrics = append(g.Metrics, m)
			r.declareMetric(m)
		}
	}
}

// prefix returns the prefix of the scope that a metric's name starts with, or is; no other scope may
// have a longer one that fits too.
func (r *resolver) prefix(m schema.Metric, scope *Scope) string {
	best, owner := "", (*Scope)(nil)
	for _, s := range r.model.Scopes {
		for _, p := range s.Prefixes {
			if strings.HasPrefix(m.Name+".", p+".") && len(p) > len(best) {
				best, owner = p, s
			}
		}
	}
	if owner != scope {
		text := "names of scope " + scope.Name + " start with " + strings.Join(scope.Prefixes, ". or ") + "."
		if owner != nil {
			text += ", and " + best + ". is that of scope " + owner.Name
		}
		r.faults.Add(m.Pos, "%s: %s", m.Name, text)
	}
	return best
}

// claim gives the metric its Prometheus name. Nothing else may have it, nor the name of a series
// that a histogram makes of it, nor the family name OpenMetrics gives a counter. Of a metric that is
// not sound the form of the name is no further fault.
func (r *resolver) claim(m *Metric, sound bool) {
	if other := r.otel[m.Name]; other != nil {
		r.faults.Add(m.Pos, "%s: the same name as at %s", m.Name, other.Pos)
		return
	}
	r.otel[m.Name] = m
	var err error
	if m.Prom, m.PromUnit, err = promNames(m.Metric); err != nil {
		r.faults.Add(m.Pos, "%s: %v", m.Name, err)
		return
	}
	if sound && !promName.MatchString(m.Prom) {
		r.faults.Add(m.Pos, "%s: its Prometheus name %s is not of lower-case words joined by underscores", m.Name, m.Prom)
	}
	for _, name := range m.SeriesNames() {
		if other := r.prom[name]; other != nil && other != m {
			r.faults.Add(m.Pos, "%s: the same Prometheus name %s as %s at %s", m.Name, name, other.Name, other.Pos)
		}
		r.prom[name] = m
	}
}

// declare reserves identifiers of the generated Go package.
func (r *resolver) declare(at schema.Pos, by string, idents ...string) {
	for _, ident := range idents {
		if other, taken := r.idents[ident]; taken {
			r.faults.Add(at, "%s: its Go name %s is that of %s", by, ident, other)
			continue
		}
		r.idents[ident] = by
	}
}

func (r *resolver) declareMetric(m *Metric) {
	name := m.Group.GoName + m.GoField
	if !m.Closed() && len(m.Attributes) > 0 {
		r.declare(m.Pos, m.Name, name+"Attributes")
	}
	if len(m.Buckets) > 0 {
		r.declare(m.Pos, m.Name, name+"Buckets")
	}
}

// renamed reports deprecations in favour of something that does not exist.
func (r *resolver) renamed() {
	for _, a := range r.model.Attributes {
		if d := a.Deprecated; d != nil && d.RenamedTo != "" && (r.attributes[d.RenamedTo] == nil || d.RenamedTo == a.Key) {
			r.faults.Add(d.Pos, "%s: renamed_to %q is no other attribute%s", a.Key, d.RenamedTo, spell.Suggest(d.RenamedTo, r.attributeKeys()))
		}
	}
	for _, m := range r.model.Metrics {
		if d := m.Deprecated; d != nil && d.RenamedTo != "" && (r.otel[d.RenamedTo] == nil || d.RenamedTo == m.Name) {
			r.faults.Add(d.Pos, "%s: renamed_to %q is no other metric", m.Name, d.RenamedTo)
		}
	}
}
