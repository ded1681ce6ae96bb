// Package gpumeter is the root of the repository: go generate ./... here writes every generated
// file from spec/, and the binary takes the spec along from here.
package gpumeter

import (
	"embed"
	"io/fs"
)

//go:generate go run ./gen

//go:embed spec/*.yaml spec/metrics/*.yaml spec/data/xids.yaml
var files embed.FS

// Spec holds the folder spec, as written: what is measured and what it means.
func Spec() fs.FS { return files }
