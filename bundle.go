package gpumeter

import (
	"archive/zip"
	_ "embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed bundle.zip
var bundle string

// Bundle holds the rules, the dashboards, the mixin and the OpenTelemetry registry that were made of the same
// spec as the binary, under their paths in the repository.
func Bundle() (fs.FS, error) {
	r, err := zip.NewReader(strings.NewReader(bundle), int64(len(bundle)))
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	return r, nil
}
