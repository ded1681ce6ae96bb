package semconv

import (
	"slices"
	"strings"

	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

// group is one file: the metrics of a group in each of its scopes. A metric that OpenTelemetry
// defines under the same name is refined, since two registries may not define one name.
func group(m *resolve.Model, g *resolve.Group) mapping {
	var defined, refined list
	for _, entry := range g.Metrics {
		for _, x := range entry.Everywhere() {
			if x.Official() {
				refined = append(refined, refinement(m, x))
			} else {
				defined = append(defined, definition(m, x))
			}
		}
	}
	doc := mapping{{"file_format", format}}
	if len(defined) > 0 {
		doc.add("metrics", defined)
	}
	if len(refined) > 0 {
		doc.add("metric_refinements", refined)
	}
	return doc
}

// definition is a metric of ours.
func definition(m *resolve.Model, x *resolve.Metric) mapping {
	out := mapping{{"name", x.Name}, {"instrument", x.Instrument}, {"unit", x.Unit}, {"brief", x.Brief}}
	out.text("note", x.Note)
	out.add("stability", stability(x.Stability))
	out.add("requirement_level", requirement(x))
	finish(&out, m, x, metricNotes(x))
	return out
}

// refinement is an official metric as we give it. The format lets it have neither an instrument nor
// a unit, which are the official ones, nor a requirement level, which is ours and so stands among
// the annotations.
func refinement(m *resolve.Model, x *resolve.Metric) mapping {
	out := mapping{{"id", space + "." + x.Name}, {"ref", x.Name}, {"brief", x.Brief}}
	out.text("note", x.Note)
	out.add("stability", stability(x.Stability))
	notes := metricNotes(x)
	notes.add("instrument", x.Instrument)
	notes.add("unit", x.Unit)
	notes.add("requirement_level", requirement(x))
	finish(&out, m, x, notes)
	return out
}

// finish adds what a definition and a refinement have alike.
func finish(out *mapping, m *resolve.Model, x *resolve.Metric, notes mapping) {
	var refs list
	if len(x.Scope.AllAttributes()) > 0 {
		refs = append(refs, mapping{{"ref_group", groupID(x.Scope)}})
	}
	for _, a := range x.Attributes {
		refs = append(refs, reference(a, level(m, a, x.Scope, strings.HasSuffix(x.Name, ".info"))))
	}
	if len(refs) > 0 {
		out.add("attributes", refs)
	}
	if d := x.Deprecated; d != nil {
		alike := slices.ContainsFunc(m.Metrics, func(y *resolve.Metric) bool {
			return y.Name == d.RenamedTo && y.Unit == x.Unit && y.Instrument == x.Instrument && slices.Equal(y.Labels(), x.Labels())
		})
		out.add("deprecated", deprecated(d, alike))
	}
	out.add("annotations", mapping{{space, notes}})
}

func requirement(x *resolve.Metric) string {
	if x.OptIn() {
		return "opt_in"
	}
	return "recommended"
}

// metricNotes is what the format has no key for.
func metricNotes(x *resolve.Metric) mapping {
	out := mapping{{"prometheus", x.Prom}, {"group", x.Group.Group.Group}, {"scope", x.Scope.Name}}
	if len(x.Buckets) > 0 {
		out.add("buckets", short{x.Buckets})
	}
	if x.ForeignBuckets {
		out.add("foreign_buckets", true)
	}
	var sources list // not a mapping: the first that answers wins
	for _, ref := range x.Sources {
		sources = append(sources, source(ref))
	}
	if len(sources) > 0 {
		out.add("sources", sources)
	}
	if t := x.Semconv; t != nil {
		out.add("semconv", twin(t))
	}
	var was list
	for _, w := range x.Was {
		other := mapping{{"system", w.System}, {"name", w.Name}}
		other.text("note", w.Note)
		was = append(was, short{other})
	}
	if len(was) > 0 {
		out.add("was", was)
	}
	if d := x.Deprecated; d != nil {
		out.add("deprecated_since", d.Since)
	}
	return out
}

func twin(t *schema.Twin) mapping {
	out := mapping{{"name", t.Name}}
	var constants mapping
	for _, a := range t.Attributes {
		constants.add(a.Key, a.Value)
	}
	if len(constants) > 0 {
		out.add("attributes", constants)
	}
	return out
}

// source says where one source finds the metric.
func source(ref schema.Named[schema.SourceRef]) short {
	r := ref.Value
	out := mapping{{"source", ref.Key}}
	out.text("call", r.Call)
	out.text("event", r.Event)
	if len(r.Field) > 0 {
		out.add("field", number(r.Field))
	}
	var fields mapping
	for _, f := range r.Fields {
		fields.add(f.Key, number(f.Value))
	}
	if len(fields) > 0 {
		out.add("fields", fields)
	}
	if len(r.States) > 0 {
		out.add("states", r.States)
	}
	out.text("file", r.File)
	out.text("column", r.Column)
	out.text("metric", r.Metric)
	if r.Scale != 0 {
		out.add("scale", r.Scale)
	}
	out.text("note", r.Note)
	return short{out}
}

// number is a field's number, or a list of them by driver version, as the spec writes it.
func number(id schema.FieldID) any {
	if len(id) == 1 && id[0] == (schema.FieldVersion{ID: id[0].ID}) {
		return id[0].ID
	}
	var out list
	for _, v := range id {
		version := mapping{}
		version.text("driver", v.Driver)
		version.text("link", v.Link)
		version.add("id", v.ID)
		if v.Part != 0 {
			version.add("part", v.Part)
		}
		if v.Scale != 0 {
			version.add("scale", v.Scale)
		}
		out = append(out, version)
	}
	return out
}
