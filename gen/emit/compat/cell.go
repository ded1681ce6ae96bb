package compat

import (
	"strings"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

// grid is a Markdown table, its first row the head.
func grid(table [][]string) string {
	var b strings.Builder
	for i, cells := range table {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
		}
	}
	return b.String()
}

// sentences joins what there is.
func sentences(list ...string) string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, emit.Prose(s))
		}
	}
	return strings.Join(out, " ")
}

func list(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, emit.Code(w))
	}
	return strings.Join(out, " ")
}

// named are the names there of one dialect.
func named(a *resolve.Answer, d schema.Dialect) []*resolve.Foreign {
	var out []*resolve.Foreign
	for _, f := range a.There {
		if f.Dialect == d.Name {
			out = append(out, f)
		}
	}
	return out
}

// names are those there, as written and as Prometheus has them.
func names(a *resolve.Answer, d schema.Dialect) string {
	var out []string
	for _, f := range named(a, d) {
		series := f.Prom
		if len(f.Attributes) > 0 {
			series += "{" + pairs(f.Attributes) + "}"
		}
		if f.Prom == f.Name {
			out = append(out, emit.Code(series)+kind(f))
			continue
		}
		out = append(out, emit.Code(f.Name), emit.Code(series))
	}
	return strings.Join(out, "<br>")
}

func pairs(m schema.Map[string]) string {
	var out []string
	for _, e := range m {
		out = append(out, strings.ReplaceAll(e.Key, ".", "_")+`="`+e.Value+`"`)
	}
	return strings.Join(out, ", ")
}

// kind says what sort of number it is there, where its name does not.
func kind(f *resolve.Foreign) string {
	words := f.Type
	if f.Type == "label" {
		return ""
	}
	if f.Unit != "" {
		words = strings.TrimPrefix(words+", ", ", ") + f.Unit
	}
	if words == "" {
		return ""
	}
	return "<br>" + emit.Prose(words)
}

// here is what we have.
func here(a *resolve.Answer) string {
	switch {
	case a.Metric != nil:
		lines := []string{link(a.Metric), emit.Code(a.Metric.Name)}
		for _, e := range a.Attributes {
			lines = append(lines, emit.Code(e.Key+"="+e.Value))
		}
		return strings.Join(lines, "<br>")
	case a.Rule != "":
		return "recording rule<br>" + emit.Code(a.Rule)
	case a.Label != "":
		return "label " + emit.Code(a.Label)
	case a.Attribute != nil:
		return "label [" + emit.Code(a.Attribute.Label) + "](metrics.md#label-" + a.Attribute.Label + ")<br>" + emit.Code(a.Attribute.Key)
	case a.Planned != "":
		return "to come"
	}
	return "none"
}

// link leads to the reference, where a metric stands under its name in the first of its scopes.
func link(m *resolve.Metric) string {
	return "[" + emit.Code(m.Prom) + "](metrics.md#" + m.Everywhere()[0].Prom + ")"
}

// queries give the same number from what we have, by dialect where they differ.
func queries(a *resolve.Answer, used []schema.Dialect) string {
	var out []string
	var first string
	same := true
	for _, d := range used {
		for _, f := range named(a, d) {
			if f.Query == "" || first == f.Query {
				continue
			}
			same = same && first == ""
			first = f.Query
			out = append(out, d.Name+": "+emit.Code(f.Query))
		}
	}
	if same && first != "" {
		return emit.Code(first)
	}
	return strings.Join(out, "<br>")
}

// note is what else the reader must know.
func note(m *resolve.Model, a *resolve.Answer) string {
	out := sentences(a.Planned, a.None, a.Note)
	add := func(s string) { out = strings.TrimSpace(out + " " + s) }
	if len(a.From) > 0 {
		var from []string
		for _, x := range a.From {
			from = append(from, link(x))
		}
		add("From " + strings.Join(from, ", ") + ".")
	}
	if a.Attribute != nil {
		add(bearers(m, a.Attribute))
	}
	if x := a.Metric; x != nil {
		if len(x.Sources) == 0 {
			add("Not read yet.")
		}
		if x.OptIn() {
			add("Opt-in.")
		}
	}
	return out
}

// bearers says which series have a label: those of scopes, or else those of a few metrics.
func bearers(m *resolve.Model, a *resolve.Attribute) string {
	var out []string
	for _, s := range m.Scopes {
		for _, x := range s.AllAttributes() {
			if x == a {
				out = append(out, "["+s.Name+"](metrics.md#scope-"+s.Name+")")
			}
		}
	}
	if len(out) > 0 {
		return "On every series of " + strings.Join(out, ", ") + "."
	}
	for _, x := range m.Metrics {
		for _, y := range x.Attributes {
			if y == a {
				out = append(out, link(x))
			}
		}
	}
	return "On " + strings.Join(out, ", ") + "."
}
