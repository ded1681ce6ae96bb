package resolve

import (
	"slices"
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
		prom:       map[string]*Metric{},
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
	r.unused()
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
	prom       map[string]*Metric
}

func (r *resolver) attribute(a schema.Attribute) {
	label, err := labelNamer.Build(a.Key)
	if err != nil || !promName.MatchString(label) || !otelName.MatchString(a.Key) {
		r.faults.Add(a.Pos, "%s: a key is lower-case words joined by dots and underscores", a.Key)
	}
	out := &Attribute{Attribute: a, GoName: goAttribute(a.Key), Label: label}
	for _, other := range r.model.Attributes {
		if other.Key == a.Key || other.GoName == out.GoName || other.Label == label {
			r.faults.Add(a.Pos, "%s: the same name as %s at %s", a.Key, other.Key, other.Pos)
		}
	}
	checkBrief(a.Pos, a.Key, a.Brief, &r.faults)
	if a.Type == "enum" != (len(a.Members) > 0) {
		r.faults.Add(a.Pos, "%s: members belong to an enum, and an enum needs them", a.Key)
	}
	seen := map[string]bool{}
	for _, m := range a.Members {
		if !otelName.MatchString(m.ID) || strings.Contains(m.ID, ".") || seen[m.ID] {
			r.faults.Add(m.Pos, "%s: member %q is twice there or not of lower-case words joined by underscores", a.Key, m.ID)
		}
		seen[m.ID] = true
		checkBrief(m.Pos, a.Key+" "+m.ID, m.Brief, &r.faults)
	}
	r.attributes[a.Key] = out
	r.model.Attributes = append(r.model.Attributes, out)
}

func (r *resolver) source(s schema.Source) {
	checkBrief(s.Pos, s.Name, s.Brief, &r.faults)
	if r.sources[s.Name] != nil {
		r.faults.Add(s.Pos, "source %s is there twice", s.Name)
		return
	}
	out := &Source{Source: s}
	r.sources[s.Name] = out
	r.model.Sources = append(r.model.Sources, out)
}

func (r *resolver) scope(s schema.Scope) {
	checkBrief(s.Pos, s.Name, s.Brief, &r.faults)
	if r.scopes[s.Name] != nil {
		r.faults.Add(s.Pos, "scope %s is there twice", s.Name)
		return
	}
	out := &Scope{Scope: s, GoName: camel(s.Name), Attributes: r.find(s.Pos, s.Name, s.Attributes)}
	r.scopes[s.Name] = out
	r.model.Scopes = append(r.model.Scopes, out)
}

// find looks attributes up by key.
func (r *resolver) find(at schema.Pos, of string, keys []string) []*Attribute {
	var out []*Attribute
	for _, key := range keys {
		a := r.attributes[key]
		if a == nil {
			r.faults.Add(at, "%s: attribute %q is not in spec/attributes.yaml%s", of, key, spell.Suggest(key, r.attributeKeys()))
			continue
		}
		if slices.Contains(out, a) {
			r.faults.Add(at, "%s: attribute %q is there twice", of, key)
		}
		out = append(out, a)
	}
	return out
}

func (r *resolver) group(g schema.Group) {
	checkBrief(g.Pos, g.Group, g.Brief, &r.faults)
	out := &Group{Group: g, GoName: camel(g.Group)}
	for _, name := range g.Scopes {
		s := r.scopes[name]
		if s == nil {
			r.faults.Add(g.Pos, "scope %q is not in spec/scopes.yaml%s", name, spell.Suggest(name, r.scopeNames()))
			continue
		}
		if s.GoName == out.GoName {
			r.faults.Add(g.Pos, "group %s bears the name of a scope", g.Group)
		}
		if len(g.Scopes) > 1 && len(s.Prefixes) != 1 {
			r.faults.Add(g.Pos, "scope %s has several prefixes, so it can not share a group", name)
		}
		out.Scopes = append(out.Scopes, s)
		s.Groups = append(s.Groups, out)
	}
	if len(out.Scopes) == 0 {
		return
	}
	for _, m := range g.Metrics {
		checkMetric(m, &r.faults)
		prefix := r.prefix(m, out.Scopes[0])
		for i, s := range out.Scopes {
			named := m
			if i > 0 {
				named.Name = s.Prefixes[0] + strings.TrimPrefix(m.Name, prefix)
			}
			x := r.metric(named, goField(m.Name, prefix, g.Group), out, s)
			if i == 0 {
				out.Metrics = append(out.Metrics, x)
			}
		}
	}
	r.model.Groups = append(r.model.Groups, out)
}

// prefix returns the prefix of the scope that a metric's name starts with; no other scope may
// have a longer one that fits too.
func (r *resolver) prefix(m schema.Metric, scope *Scope) string {
	best, owner := "", (*Scope)(nil)
	for _, s := range r.model.Scopes {
		for _, p := range s.Prefixes {
			if strings.HasPrefix(m.Name, p+".") && len(p) > len(best) {
				best, owner = p, s
			}
		}
	}
	if owner != scope {
		r.faults.Add(m.Pos, "%s: names of scope %s start with %s", m.Name, scope.Name, strings.Join(scope.Prefixes, ". or ")+".")
	}
	return best
}

func (r *resolver) metric(written schema.Metric, field string, g *Group, s *Scope) *Metric {
	m := &Metric{Metric: written, Group: g, Scope: s, GoField: field}
	m.Attributes = r.find(m.Pos, m.Name, written.Attributes)
	for _, a := range m.Attributes {
		if slices.Contains(s.Attributes, a) {
			r.faults.Add(m.Pos, "%s: every series of scope %s carries %s already", m.Name, s.Name, a.Key)
		}
	}
	if n := len(m.Labels()); n > maxLabels {
		r.faults.Add(m.Pos, "%s: %d labels; at most %d", m.Name, n, maxLabels)
	}
	for _, other := range g.Metrics {
		if other.GoField == field && other.Scope == s {
			r.faults.Add(m.Pos, "%s: the same field %s.%s as %s at %s", m.Name, g.GoName, field, other.Name, other.Pos)
		}
	}
	r.promise(m)
	for _, ref := range m.Sources {
		r.checkRef(m, ref)
	}
	s.Metrics = append(s.Metrics, m)
	return m
}

// promise gives the metric its Prometheus name, which nothing else may have.
func (r *resolver) promise(m *Metric) {
	var err error
	if m.Prom, m.PromUnit, err = promNames(m.Metric); err != nil {
		r.faults.Add(m.Pos, "%s: %v", m.Name, err)
		return
	}
	if !promName.MatchString(m.Prom) {
		r.faults.Add(m.Pos, "%s: its Prometheus name %s is not of lower-case words joined by underscores", m.Name, m.Prom)
	}
	if other := r.prom[m.Prom]; other != nil {
		r.faults.Add(m.Pos, "%s: the same Prometheus name %s as %s at %s", m.Name, m.Prom, other.Name, other.Pos)
	}
	r.prom[m.Prom] = m
}

// unused reports attributes and sources that nothing names.
func (r *resolver) unused() {
	used := map[*Attribute]bool{}
	for _, s := range r.model.Scopes {
		for _, a := range s.Attributes {
			used[a] = true
		}
	}
	for _, m := range r.model.Metrics {
		for _, a := range m.Attributes {
			used[a] = true
		}
	}
	for _, a := range r.model.Attributes {
		if !used[a] {
			r.faults.Add(a.Pos, "%s: no metric has this attribute", a.Key)
		}
	}
	for _, s := range r.model.Sources {
		if len(s.Metrics) == 0 {
			r.faults.Add(s.Pos, "source %s: no metric names it", s.Name)
		}
	}
}

func (r *resolver) attributeKeys() []string {
	var keys []string
	for _, a := range r.model.Attributes {
		keys = append(keys, a.Key)
	}
	return keys
}

func (r *resolver) sourceNames() []string {
	var names []string
	for _, s := range r.model.Sources {
		names = append(names, s.Name)
	}
	return names
}

func (r *resolver) scopeNames() []string {
	var names []string
	for _, s := range r.model.Scopes {
		names = append(names, s.Name)
	}
	return names
}
