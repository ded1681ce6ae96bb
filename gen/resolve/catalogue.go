package resolve

import (
	"regexp"
	"slices"

	"github.com/gpumeter/gpumeter/gen/schema"
	"github.com/gpumeter/gpumeter/spell"
)

var (
	word      = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	groupName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	memberID  = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
)

// Labels that Prometheus itself puts on series.
var reservedLabels = []string{"le", "quantile", "job", "instance"}

func (r *resolver) attribute(a schema.Attribute) {
	label, err := labelNamer.Build(a.Key)
	if err != nil || !promName.MatchString(label) || !otelName.MatchString(a.Key) {
		r.faults.Add(a.Pos, "attribute %q: a key is lower-case words joined by dots and underscores", a.Key)
		return
	}
	if slices.Contains(reservedLabels, label) {
		r.faults.Add(a.Pos, "%s: the label %s is Prometheus' own", a.Key, label)
	}
	out := &Attribute{Attribute: a, GoName: goAttribute(a.Key), Label: label}
	for _, other := range r.model.Attributes {
		if other.GoName == out.GoName || other.Label == label {
			r.faults.Add(a.Pos, "%s: the same name as %s at %s", a.Key, other.Key, other.Pos)
			return
		}
	}
	checkBrief(a.Pos, a.Key, a.Brief, &r.faults)
	if (a.Type == "enum") != (len(a.Members) > 0) {
		r.faults.Add(a.Pos, "%s: members belong to an enum, and an enum needs them", a.Key)
	}
	if out.Closed() {
		r.declare(a.Pos, a.Key, out.GoName)
	}
	seen := map[string]bool{}
	for i, m := range a.Members {
		switch {
		case !memberID.MatchString(m.ID):
			r.faults.Add(m.Pos, "%s: member %q is not of lower-case words joined by underscores", a.Key, m.ID)
		case seen[m.ID]:
			r.faults.Add(m.Pos, "%s: member %q is there twice", a.Key, m.ID)
		default:
			r.declare(m.Pos, a.Key+" "+m.ID, out.MemberName(i))
		}
		seen[m.ID] = true
		checkBrief(m.Pos, a.Key+" "+m.ID, m.Brief, &r.faults)
	}
	r.attributes[a.Key] = out
	r.model.Attributes = append(r.model.Attributes, out)
}

func (r *resolver) source(s schema.Source) {
	if !word.MatchString(s.Name) {
		r.faults.Add(s.Pos, "source %q: a name is one lower-case word", s.Name)
	}
	checkBrief(s.Pos, "source "+s.Name, s.Brief, &r.faults)
	if r.sources[s.Name] != nil {
		r.faults.Add(s.Pos, "source %s is there twice", s.Name)
		return
	}
	out := &Source{Source: s}
	r.sources[s.Name] = out
	r.model.Sources = append(r.model.Sources, out)
}

func (r *resolver) scope(s schema.Scope) {
	if !word.MatchString(s.Name) {
		r.faults.Add(s.Pos, "scope %q: a name is one lower-case word", s.Name)
	}
	checkBrief(s.Pos, "scope "+s.Name, s.Brief, &r.faults)
	if r.scopes[s.Name] != nil {
		r.faults.Add(s.Pos, "scope %s is there twice", s.Name)
		return
	}
	for _, p := range s.Prefixes {
		if !otelName.MatchString(p) {
			r.faults.Add(s.Pos, "scope %s: prefix %q is not of lower-case words joined by dots and underscores", s.Name, p)
		}
		for _, other := range r.model.Scopes {
			if slices.Contains(other.Prefixes, p) {
				r.faults.Add(s.Pos, "scope %s: prefix %s is that of scope %s", s.Name, p, other.Name)
			}
		}
	}
	out := &Scope{Scope: s, GoName: camel(s.Name), Attributes: r.find(s.Pos, "scope "+s.Name, s.Attributes)}
	r.declare(s.Pos, "scope "+s.Name, out.GoName, out.GoName+"Attributes", out.GoName+"Families")
	r.within(out)
	r.scopes[s.Name] = out
	r.model.Scopes = append(r.model.Scopes, out)
}

// within finds the scope this one's things are parts of, which must itself be of whole things.
func (r *resolver) within(s *Scope) {
	if s.Scope.Within == "" {
		return
	}
	whole := r.scopes[s.Scope.Within]
	if whole == nil || whole.Within != nil {
		r.faults.Add(s.Pos, "scope %s: within %q: no scope of whole things written before it%s", s.Name, s.Scope.Within,
			spell.Suggest(s.Scope.Within, r.scopeNames()))
		return
	}
	for _, a := range s.Attributes {
		if slices.Contains(whole.Attributes, a) {
			r.faults.Add(s.Pos, "scope %s: scope %s, which it is within, carries %s already", s.Name, whole.Name, a.Key)
		}
	}
	s.Within = whole
	whole.Parts = append(whole.Parts, s)
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
		out = append(out, a)
	}
	return out
}

// unused reports what nothing names: it would be promised in the reference and never seen.
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
	for _, s := range r.model.Scopes {
		if len(s.Groups) == 0 {
			r.faults.Add(s.Pos, "scope %s: no group serves it", s.Name)
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
