package mixin

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"
)

// The mixin that the binary carries has all it imports, and renders what that of the repository does.
func TestBundled(t *testing.T) {
	archive, err := zip.OpenReader("../../bundle.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close() //nolint:errcheck // it was only read
	dir := t.TempDir()
	if err := os.CopyFS(dir, archive); err != nil {
		t.Fatal(err)
	}
	const all = `local m = import 'mixin.libsonnet'; [m.prometheusAlerts, m.prometheusRules, m.grafanaDashboards, m.gpumeterRules]`
	want, err := evaluate(all)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := evaluateIn(filepath.Join(dir, "mixin"), all); err != nil || got != want {
		t.Errorf("%v, rendered\n%s\nwant\n%s", err, got, want)
	}
}
