// Package runbook emits the page on rules: what each says, what can be set, and what to do when it fires.
package runbook

import (
	_ "embed"
	"strings"
	"text/template"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/promql"
	"github.com/gpumeter/gpumeter/gen/resolve"
)

const file = "spec/reference/rules.md"

// Emitter writes one page with all rules. The runbooks of the alerts lead there.
var Emitter = emit.Emitter{
	Name: "runbook",
	Doc:  "what each rule says, and what to do when an alert fires",
	Owns: []string{file},
	Run:  run,
}

//go:embed runbook.md.tmpl
var text string

var page = emit.NewPage(file, text, template.FuncMap{
	"pretty": (*promql.Expr).Pretty,
	"trim":   strings.TrimSpace, "indent": indent,
})

// indent puts an expression into a block of code.
func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.Trim(s, "\n"), "\n", "\n    ")
}

func run(m *resolve.Model) ([]emit.File, error) {
	var files []*resolve.RuleFile
	for _, f := range m.Rules {
		if f.Pack != "compat" { // the pages on other exporters have those
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return nil, nil
	}
	return page.Of("rules", files)
}
