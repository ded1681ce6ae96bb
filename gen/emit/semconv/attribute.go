package semconv

import (
	"slices"
	"strconv"

	"github.com/gpumeter/gpumeter/gen/resolve"
)

// attributes defines those that are ours. Official ones are only referred to.
func attributes(m *resolve.Model) mapping {
	var all list
	for _, a := range m.Attributes {
		if !a.Official() {
			all = append(all, attribute(m, a))
		}
	}
	doc := mapping{{"file_format", format}}
	if len(all) > 0 {
		doc.add("attributes", all)
	}
	return doc
}

func attribute(m *resolve.Model, a *resolve.Attribute) mapping {
	out := mapping{{"key", a.Key}, {"type", kind(a)}, {"brief", a.Brief}}
	out.text("note", a.Note)
	out.add("stability", stability(a.Stability))
	if len(a.Examples) > 0 {
		out.add("examples", short{examples(a)})
	}
	if d := a.Deprecated; d != nil {
		alike := slices.ContainsFunc(m.Attributes, func(b *resolve.Attribute) bool { return b.Key == d.RenamedTo && b.Type == a.Type })
		out.add("deprecated", deprecated(d, alike))
	}
	out.add("annotations", mapping{{space, attributeNotes(a)}})
	return out
}

// kind is the type of an attribute; that of an enum is its members.
func kind(a *resolve.Attribute) any {
	if !a.Closed() {
		return a.Type
	}
	var members list
	for _, x := range a.Members {
		members = append(members, mapping{
			{"id", x.ID}, {"value", x.ID}, {"brief", x.Brief}, {"stability", stability(a.Stability)},
		})
	}
	return mapping{{"members", members}}
}

// examples are of the attribute's own type.
func examples(a *resolve.Attribute) list {
	var out list
	for _, text := range a.Examples {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && a.Type == "int" {
			out = append(out, n)
			continue
		}
		out = append(out, text)
	}
	return out
}

// attributeNotes is what the format has no key for.
func attributeNotes(a *resolve.Attribute) mapping {
	out := mapping{{"prometheus", a.Label}, {"from", a.From}, {"cardinality", a.Cardinality}}
	if !a.IsAdditive() {
		out.add("additive", false)
	}
	if d := a.Deprecated; d != nil {
		out.add("deprecated_since", d.Since)
	}
	if a.Official() && a.Closed() { // the official definition may have more
		var ids list
		for _, x := range a.Members {
			ids = append(ids, x.ID)
		}
		out.add("members", short{ids})
	}
	var twins list
	for _, c := range a.Counterparts() {
		twin := mapping{{"key", c.Key}}
		var words mapping
		for _, x := range a.Members { // in their order, which a map has not
			if word, ok := c.Values[x.ID]; ok {
				words.add(x.ID, word)
			}
		}
		if len(words) > 0 {
			twin.add("values", short{words})
		}
		twins = append(twins, twin)
	}
	if len(twins) > 0 {
		out.add("semconv", twins)
	}
	return out
}

// reference refers to an attribute. An official one is told what it means here.
func reference(a *resolve.Attribute, level any) mapping {
	out := mapping{{"ref", a.Key}}
	if a.Official() {
		out.add("brief", a.Brief)
		out.text("note", a.Note)
	}
	out.add("requirement_level", level)
	if a.Official() {
		out.add("annotations", mapping{{space, attributeNotes(a)}})
	}
	return out
}

// level says whether a series of the scope always carries the attribute: not where it is of a
// workload, which there may not be, nor where it is of a part and the scope is not of such parts.
// An info series has what the driver gives.
func level(m *resolve.Model, a *resolve.Attribute, s *resolve.Scope, info bool) any {
	if a.Cardinality == "workload" {
		return mapping{{"conditionally_required", "Where there is one."}}
	}
	for _, other := range m.Scopes {
		if other.Within != nil && other != s && slices.Contains(other.Attributes, a) {
			return mapping{{"conditionally_required", "Where it is about a " + other.Name + "."}}
		}
	}
	if info && !a.Closed() {
		return "recommended"
	}
	return "required"
}
