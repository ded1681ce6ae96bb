// Package xids emits the page on NVIDIA's XID errors: what each means and what to do.
package xids

import (
	"bytes"
	_ "embed"
	"fmt"
	"text/template"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
)

const file = "spec/reference/xids.md"

// Emitter writes one page with a table of all codes.
var Emitter = emit.Emitter{
	Name: "xids",
	Doc:  "what each XID error means and what to do",
	Owns: file,
	Run:  run,
}

//go:embed xids.md.tmpl
var text string

var templates = template.Must(template.New("").Option("missingkey=error").Funcs(template.FuncMap{
	"header": emit.Header, "prose": emit.Prose, "code": emit.Code,
}).Parse(text))

func run(m *resolve.Model) ([]emit.File, error) {
	if m.XIDs == nil {
		return nil, nil
	}
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, "xids", m.XIDs); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return []emit.File{{Path: file, Data: b.Bytes()}}, nil
}
