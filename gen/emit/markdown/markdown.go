// Package markdown emits the reference of all metrics.
package markdown

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"text/template"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

const file = "spec/reference/metrics.md"

// Emitter writes one page: groups, attributes, scopes and sources.
var Emitter = emit.Emitter{
	Name: "markdown",
	Doc:  "the reference people read",
	Owns: []string{file},
	Run:  run,
}

//go:embed metrics.md.tmpl
var text string

var page = emit.NewPage(file, text, template.FuncMap{
	"names": names, "kind": kind, "status": status,
	"reads": reads, "values": values, "twin": twin, "was": was, "floats": floats, "deprecated": deprecated,
	"scopes": scopes, "codes": codes, "many": many,
})

func run(m *resolve.Model) ([]emit.File, error) {
	return page.Of("metrics", m)
}

func codes(list []string) string {
	var out []string
	for _, s := range list {
		out = append(out, emit.Code(s))
	}
	return strings.Join(out, ", ")
}

// names are the metric's Prometheus and OpenTelemetry names in each scope of its group.
func names(m *resolve.Metric) string {
	var out []string
	for _, x := range m.Everywhere() {
		prom := emit.Code(x.Prom)
		if x.Instrument == "histogram" {
			prom = codes(x.SeriesNames()[1:])
		}
		line := "Prometheus " + prom + ", OpenTelemetry " + emit.Code(x.Name)
		if len(m.Group.Scopes) > 1 {
			line = "of a " + x.Scope.Name + ": " + line
		}
		out = append(out, "- "+line)
	}
	return strings.Join(out, "\n")
}

// kind says what sort of number it is, in what unit.
func kind(m *resolve.Metric) string {
	article := "A "
	if m.Instrument == "updowncounter" {
		article = "An "
	}
	out := article + m.Instrument
	switch {
	case m.Unit == "1":
		out += ", a ratio of 0 to 1"
	case m.Unit != "":
		out += " in " + emit.Code(m.Unit)
	}
	if len(m.Buckets) > 0 {
		out += ", with buckets up to " + floats(m.Buckets)
	}
	return out + "."
}

// status is what a reader should know before building on the metric.
func status(m *resolve.Metric) string {
	var out []string
	if m.OptIn() {
		out = append(out, "**Opt-in**: off unless it is included.")
	}
	if m.Stability == "stable" {
		out = append(out, "Stable.")
	}
	if m.Deprecated != nil {
		out = append(out, deprecated(m.Deprecated))
	}
	return strings.Join(out, " ")
}

func deprecated(d *schema.Deprecated) string {
	out := "**Deprecated** since " + d.Since
	if d.RenamedTo != "" {
		out += "; use " + emit.Code(d.RenamedTo)
	}
	if d.Explaining != "" {
		return out + ". " + emit.Prose(d.Explaining)
	}
	return out + "."
}

// read is who reads a metric, as a row of a table.
type read struct{ Source, Where, Scale, Note string }

func reads(m *resolve.Metric) []read {
	var out []read
	for _, s := range m.Sources {
		r := read{Source: s.Key, Where: where(s.Value), Note: emit.Prose(s.Value.Note)}
		if s.Value.Scale != 0 {
			r.Scale = "× " + strconv.FormatFloat(s.Value.Scale, 'g', -1, 64)
		}
		out = append(out, r)
	}
	return out
}

// where says where a source finds a metric.
func where(r schema.SourceRef) string {
	var out []string
	add := func(sort, name string) {
		if name != "" {
			out = append(out, sort+" "+emit.Code(name))
		}
	}
	add("call", r.Call)
	add("event", r.Event)
	if len(r.Field) > 0 {
		out = append(out, "field "+number(r.Field))
	}
	if len(r.Fields) > 0 {
		var each []string
		for _, f := range r.Fields {
			each = append(each, emit.Code(f.Key)+" "+number(f.Value))
		}
		out = append(out, "fields "+strings.Join(each, ", "))
	}
	add("file", r.File)
	add("column", r.Column)
	add("metric", r.Metric)
	return strings.Join(out, "; ")
}

// number is a field's number, by driver version where it moved.
func number(id schema.FieldID) string {
	var out []string
	for _, v := range id {
		s := strconv.FormatUint(uint64(v.ID), 10)
		var when []string
		if v.Link != "" {
			when = append(when, emit.Code(v.Link))
		}
		if v.Driver != "" {
			when = append(when, "driver "+emit.Code(v.Driver))
		}
		if v.Part != 0 {
			when = append(when, "part "+strconv.FormatUint(uint64(v.Part), 10))
		}
		if v.Scale != 0 {
			when = append(when, "× "+strconv.FormatFloat(v.Scale, 'g', -1, 64))
		}
		if len(when) > 0 {
			s += " (" + strings.Join(when, ", ") + ")"
		}
		out = append(out, s)
	}
	return strings.Join(out, " or ")
}

// values says what values a label can have.
func values(a *resolve.Attribute) string {
	var out []string
	for _, m := range a.Members {
		out = append(out, emit.Code(m.ID)+" "+emit.Prose(m.Brief))
	}
	if len(out) == 0 {
		return emit.Prose(a.Brief)
	}
	return strings.Join(out, "<br>")
}

func twin(t *schema.Twin) string {
	var with []string
	for _, a := range t.Attributes {
		with = append(with, emit.Code(a.Key+"="+a.Value))
	}
	if len(with) == 0 {
		return emit.Code(t.Name)
	}
	return emit.Code(t.Name) + " with " + strings.Join(with, ", ")
}

func was(list []schema.Was) string {
	var out []string
	for _, w := range list {
		s := w.System + " " + emit.Code(w.Name)
		if w.Note != "" {
			s += " (" + strings.TrimSuffix(emit.Prose(w.Note), ".") + ")"
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func floats(list []float64) string {
	var out []string
	for _, f := range list {
		out = append(out, strconv.FormatFloat(f, 'g', -1, 64))
	}
	return strings.Join(out, ", ")
}

// scopes links the scopes a group serves.
func scopes(g *resolve.Group) string {
	var out []string
	for _, s := range g.Scopes {
		out = append(out, fmt.Sprintf("[%s](#scope-%s)", s.Name, s.Name))
	}
	return strings.Join(out, " and ")
}

// many says how many values a label can have.
func many(a *resolve.Attribute) string {
	switch a.Cardinality {
	case "fixed":
		return "as the spec says"
	case "node":
		return "as the node's hardware has"
	case "open":
		return "as events bring"
	}
	return "one a " + a.Cardinality
}
