// Package xids emits the page on NVIDIA's XID errors: what each means and what to do.
package xids

import (
	_ "embed"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
)

const file = "spec/reference/xids.md"

// Emitter writes one page with a table of all codes.
var Emitter = emit.Emitter{
	Name: "xids",
	Doc:  "what each XID error means and what to do",
	Owns: []string{file},
	Run:  run,
}

//go:embed xids.md.tmpl
var text string

var page = emit.NewPage(file, text, nil)

func run(m *resolve.Model) ([]emit.File, error) {
	if m.XIDs == nil {
		return nil, nil
	}
	return page.Of("xids", m.XIDs)
}
