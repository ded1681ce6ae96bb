// Package bundle makes the archive the binary carries: rules, dashboards, mixin and registry.
package bundle

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zip"

	"github.com/gpumeter/gpumeter/gen/emit"
)

const (
	file   = "bundle.zip"
	byHand = "mixin" // the one folder with files that no emitter writes
)

// folders are taken whole, from what the emitters made.
var folders = []string{"rules", "dashboards", byHand, "spec/semconv"}

// Make packs the files of the bundle, under their paths in the repository: those of the emitters, and what is
// written by hand in the mixin of root. The same files give the same bytes with any version of Go, for writer
// and compression are a library of go.mod.
func Make(root fs.FS, emitted map[string][]byte) (emit.File, error) {
	files, err := written(root)
	if err != nil {
		return emit.File{}, fmt.Errorf("bundle: %w", err)
	}
	for p, data := range emitted {
		if slices.ContainsFunc(folders, func(dir string) bool { return strings.HasPrefix(p, dir+"/") }) {
			files[p] = data
		}
	}
	data, err := pack(files)
	if err != nil {
		return emit.File{}, fmt.Errorf("bundle: %w", err)
	}
	return emit.File{Path: file, Data: data}, nil
}

// written are the files of the mixin written by hand, without their tests. What stands on disk in a generated
// folder may be stale, and what jsonnet-bundler fetched is somebody else's.
func written(root fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(root, byHand, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, hidden := e.Name(), strings.HasPrefix(e.Name(), ".")
		switch {
		case e.IsDir() && (hidden || name == "generated" || name == "vendor"):
			return fs.SkipDir
		case e.IsDir() || hidden || strings.Contains(name, "_test."):
			return nil
		}
		files[p], err = fs.ReadFile(root, p)
		return err
	})
	return files, err
}

// pack gives the archive no times and no owners, and one order.
func pack(files map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	if err := w.SetComment(emit.Header("spec and mixin")); err != nil {
		return nil, err
	}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		f, err := w.CreateHeader(&zip.FileHeader{Name: p, Method: zip.Deflate})
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(files[p]); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
