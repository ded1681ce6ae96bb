package resolve

import (
	"math"
	"regexp"
	"slices"

	"github.com/gpumeter/gpumeter/gen/schema"
	"github.com/gpumeter/gpumeter/spell"
)

// checkFields wants numbers for members of the metric's one enum attribute.
func (r *resolver) checkFields(m *Metric, ref schema.Named[schema.SourceRef]) {
	if len(m.Attributes) != 1 || !m.Attributes[0].Closed() {
		r.faults.Add(ref.Pos, "%s: source %s: fields wants exactly one enum attribute", m.Name, ref.Key)
		return
	}
	ids := m.Attributes[0].MemberIDs()
	if ref.Value.Call != "" && len(ref.Value.Fields) >= len(ids) && m.Scope.Name != "link" {
		r.faults.Add(ref.Pos, "%s: source %s: fields give every member, so call reads none", m.Name, ref.Key)
	}
	for _, f := range ref.Value.Fields {
		r.checkMember(m, ref, f.Pos, f.Key)
		if len(f.Value) == 0 {
			r.faults.Add(f.Pos, "%s: source %s: %s has no number", m.Name, ref.Key, f.Key)
		}
		r.checkVersions(m, ref, f)
	}
}

// checkStates wants the meanings of a field's numbers to be members of the metric's one enum attribute.
func (r *resolver) checkStates(m *Metric, ref schema.Named[schema.SourceRef]) {
	if ref.Value.States == nil {
		return
	}
	if len(ref.Value.Field) == 0 || len(m.Attributes) != 1 || !m.Attributes[0].Closed() {
		r.faults.Add(ref.Pos, "%s: source %s: states wants a field and exactly one enum attribute", m.Name, ref.Key)
		return
	}
	for _, s := range ref.Value.States {
		r.checkMember(m, ref, ref.Pos, s)
	}
}

func (r *resolver) checkMember(m *Metric, ref schema.Named[schema.SourceRef], at schema.Pos, id string) {
	if ids := m.Attributes[0].MemberIDs(); !slices.Contains(ids, id) {
		r.faults.Add(at, "%s: source %s: %q is no member of %s%s", m.Name, ref.Key, id, m.Attributes[0].Key, spell.Suggest(id, ids))
	}
}

// function is what a function of a source may be called.
var function = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

// checkVersions wants ranges of driver versions that do not meet, for each sort of link, but where
// a number is read instead of another.
func (r *resolver) checkVersions(m *Metric, ref schema.Named[schema.SourceRef], f schema.Named[schema.FieldID]) {
	type span struct {
		first, last int
		link        string
	}
	var before []span
	for i, v := range f.Value {
		bad := func(format string, args ...any) {
			r.faults.Add(f.Pos, m.Name+": source "+ref.Key+": "+f.Key+": "+format, args...)
		}
		r.checkLink(m, v, bad)
		if v.As != "" && !function.MatchString(v.As) {
			bad("as: %q is no name of a function", v.As)
		}
		if v.Scale < 0 || math.IsInf(v.Scale, 0) || math.IsNaN(v.Scale) {
			bad("scale %v is no positive number", v.Scale)
		}
		if v.Instead && i == 0 {
			bad("the first number is read instead of none")
		}
		first, last, err := DriverRange(v.Driver)
		if err != nil {
			bad("%v", err)
			continue
		}
		if last == 0 {
			last = math.MaxInt
		}
		for _, b := range before {
			if first <= b.last && b.first <= last && v.Link == b.link && !v.Instead {
				bad("driver range %q meets another", v.Driver)
			}
		}
		before = append(before, span{first, last, v.Link})
	}
}

// checkLink wants the sort of link where there are several, and only there.
func (r *resolver) checkLink(m *Metric, v schema.FieldVersion, bad func(string, ...any)) {
	sort := m.Scope.Sort()
	switch {
	case sort == nil && v.Link != "":
		bad("link: the scope %s has no sorts of link", m.Scope.Name)
	case sort != nil && v.Link == "":
		bad("wants link: which sort of link has it")
	case sort != nil && !slices.Contains(sort.MemberIDs(), v.Link):
		bad("%q is no member of %s%s", v.Link, sort.Key, spell.Suggest(v.Link, sort.MemberIDs()))
	}
}
