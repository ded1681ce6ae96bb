// Package gentest holds the sample spec that the tests of the generator share, and their goldens.
package gentest

import (
	"bytes"
	_ "embed"
	"flag"
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

//go:embed sample.txtar
var sample []byte

// Sample returns the files of the sample spec, for the test to change as it likes.
func Sample() fstest.MapFS {
	root := fstest.MapFS{}
	for _, f := range txtar.Parse(sample).Files {
		root[f.Name] = &fstest.MapFile{Data: bytes.Clone(f.Data)}
	}
	return root
}

// Model returns the sample spec, resolved.
func Model(t testing.TB) *resolve.Model {
	t.Helper()
	spec, err := schema.Load(Sample())
	if err != nil {
		t.Fatal(err)
	}
	model, err := resolve.Resolve(spec)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// Golden runs the emitter on the sample and compares what it makes with a txtar archive.
func Golden(t *testing.T, e emit.Emitter, archive string) []emit.File {
	t.Helper()
	files, err := e.Run(Model(t))
	if err != nil {
		t.Fatal(err)
	}
	got := &txtar.Archive{Comment: []byte("What " + e.Name + " makes of gen/gentest/sample.txtar; go test . -update writes it.\n")}
	for _, f := range files {
		if !bytes.HasSuffix(f.Data, []byte("\n")) {
			t.Errorf("%s does not end with a newline", f.Path)
		}
		got.Files = append(got.Files, txtar.File{Name: f.Path, Data: f.Data})
	}
	if *update {
		if err := os.WriteFile(archive, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return files
	}
	want, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(txtar.Format(got))); diff != "" {
		t.Errorf("not as in %s; -update writes it anew (-want +got):\n%s", archive, diff)
	}
	return files
}
