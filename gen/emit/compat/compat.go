// Package compat emits, for each other exporter, what its names are called here.
package compat

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

// Emitter writes one page for each other exporter.
var Emitter = emit.Emitter{
	Name: "compat",
	Doc:  "other exporters' names and ours",
	Owns: []string{"spec/reference/from-*.md"},
	Run:  run,
}

//go:embed page.md.tmpl
var text string

var templates = template.Must(template.New("").Option("missingkey=error").Funcs(template.FuncMap{
	"header": emit.Header, "prose": emit.Prose, "anchor": anchor, "labels": labels, "table": table, "rest": rest, "objects": objects,
}).Parse(text))

func run(m *resolve.Model) ([]emit.File, error) {
	var files []emit.File
	for _, c := range m.Compats {
		path := "spec/reference/from-" + c.System + ".md"
		var b bytes.Buffer
		if err := templates.ExecuteTemplate(&b, "page", page{c, m}); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, emit.File{Path: path, Data: b.Bytes()})
	}
	return files, nil
}

// page is what one page is made from.
type page struct {
	*resolve.Compat
	Model *resolve.Model
}

// objects are links to the rules that give the exporter's names, none when there are none.
func objects(p page) string {
	var out []string
	for _, f := range p.Model.Rules {
		if f.Pack == "compat" && f.File == p.Pos.File {
			name := "gpumeter-" + f.Object
			out = append(out, "["+emit.Code(name)+"](../../rules/plain/compat/"+name+".yaml)")
		}
	}
	return strings.Join(out, ", ")
}

// anchor is what a link to a heading says.
func anchor(heading string) string {
	return "#" + strings.ReplaceAll(strings.ToLower(heading), " ", "-")
}

func labels(p page) string { return rows(p, p.Labels) }

func table(p page, s *resolve.Section) string { return rows(p, s.Answers) }

// rest is the answer to the fields that have no row.
func rest(s *resolve.Section) string {
	who := "Every field"
	if len(s.Answers) > 0 {
		who = "Every other field"
	}
	if s.Rest.Planned != "" {
		return "**" + who + "**: to come. " + sentences(s.Rest.Planned, s.Rest.Note)
	}
	return "**" + who + "**: none. " + sentences(s.Rest.None, s.Rest.Note)
}

// rows is a table of answers, with a column for each set of names that is used.
func rows(p page, answers []*resolve.Answer) string {
	var used []schema.Dialect
	for _, d := range p.Dialects {
		if slices.ContainsFunc(answers, func(a *resolve.Answer) bool { return len(named(a, d)) > 0 }) {
			used = append(used, d)
		}
	}
	fields := slices.ContainsFunc(answers, func(a *resolve.Answer) bool { return len(a.Fields) > 0 })
	same := slices.ContainsFunc(answers, func(a *resolve.Answer) bool { return queries(a, used) != "" })
	var out [][]string
	var head []string
	if fields {
		head = append(head, "Field there")
	}
	for _, d := range used {
		word := "Name there"
		if len(p.Dialects) > 1 {
			word = "Name " + d.Name
		}
		head = append(head, word)
	}
	head = append(head, "Here")
	if same {
		head = append(head, "The same number")
	}
	out = append(out, append(head, "Note"))
	for _, a := range answers {
		var cells []string
		if fields {
			cells = append(cells, list(a.Fields))
		}
		for _, d := range used {
			cells = append(cells, names(a, d))
		}
		cells = append(cells, here(a))
		if same {
			cells = append(cells, queries(a, used))
		}
		out = append(out, append(cells, note(p.Model, a)))
	}
	return grid(out)
}
