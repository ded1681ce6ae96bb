// Package health emits the page on the health score: its terms, what each takes and what it is judged by.
package health

import (
	"bytes"
	_ "embed"
	"fmt"
	"text/template"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
)

const file = "spec/reference/health.md"

// Emitter writes one page with a table of all terms.
var Emitter = emit.Emitter{
	Name: "health",
	Doc:  "what the health score is made of",
	Owns: file,
	Run:  run,
}

//go:embed health.md.tmpl
var text string

var templates = template.Must(template.New("").Option("missingkey=error").Funcs(template.FuncMap{
	"header": emit.Header, "prose": emit.Prose, "code": emit.Code,
}).Parse(text))

func run(m *resolve.Model) ([]emit.File, error) {
	if m.Health == nil {
		return nil, nil
	}
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, "health", m.Health); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return []emit.File{{Path: file, Data: b.Bytes()}}, nil
}
