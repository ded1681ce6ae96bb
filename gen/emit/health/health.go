// Package health emits the page on the health score: its terms, what each takes and what it is judged by.
package health

import (
	_ "embed"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
)

const file = "spec/reference/health.md"

// Emitter writes one page with a table of all terms.
var Emitter = emit.Emitter{
	Name: "health",
	Doc:  "what the health score is made of",
	Owns: []string{file},
	Run:  run,
}

//go:embed health.md.tmpl
var text string

var page = emit.NewPage(file, text, nil)

func run(m *resolve.Model) ([]emit.File, error) {
	if m.Health == nil {
		return nil, nil
	}
	return page.Of("health", m.Health)
}
