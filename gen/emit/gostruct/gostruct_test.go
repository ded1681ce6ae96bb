package gostruct

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gpumeter/gpumeter/gen/gentest"
)

func TestGolden(t *testing.T) {
	for _, f := range gentest.Golden(t, Emitter, "testdata/sample.txtar") {
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Path, f.Data, parser.ParseComments)
		if err != nil {
			t.Error(err)
			continue
		}
		if !ast.IsGenerated(parsed) {
			t.Errorf("%s does not begin as generated files do", f.Path)
		}
	}
}

// What the generated files need from those written by hand beside them.
const beside = `package telemetry

import "github.com/gpumeter/gpumeter/exporter/metric"

type Family[T any] struct {
	Desc       *metric.Desc
	Rows       []func(*T) *metric.Value
	Keyed      func(*T) *[]metric.Keyed
	Histograms func(*T) *[]KeyedHistogram
}

type KeyedHistogram struct {
	Labels    *metric.Labels
	Histogram *metric.Histogram
}

type Part[T any] struct {
	Labels *metric.Labels
	Read   T
}

type Reading struct{}

func (f *Family[T]) Each(*T, func(Reading))                                  {}
func eachPart[T any](*Family[T], []Part[T], func(Reading))                   {}
func eachOf[T any]([]Family[T], *T, func(*metric.Desc, Reading))             {}
func eachOfParts[T any]([]Family[T], []Part[T], func(*metric.Desc, Reading)) {}
func describe[T any](all []*metric.Desc, _ []Family[T]) []*metric.Desc       { return all }

func Keep[T any](families []Family[T], _ func(*metric.Desc) bool) []Family[T] { return families }
`

// The repository's own spec has not every shape, so the sample's files are compiled as well.
func TestSampleCompiles(t *testing.T) {
	files, err := run(gentest.Model(t))
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	// The package is laid over the repository at a place where there is nothing.
	dir, at := t.TempDir(), filepath.Join(root, "gen/emit/gostruct/sample")
	overlay := map[string]map[string]string{"Replace": {}}
	put := func(name string, data []byte) {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
		overlay["Replace"][filepath.Join(at, name)] = file
	}
	put("beside.go", []byte(beside))
	for _, f := range files {
		put(filepath.Base(f.Path), f.Data)
	}
	raw, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", file, "./gen/emit/gostruct/sample")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
