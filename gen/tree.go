package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gpumeter/gpumeter/gen/emit"
)

// tree is what the generated files are to be, beside what is on disk.
type tree struct {
	root  string
	want  map[string][]byte
	globs []string
}

// add takes an emitter's files, which must lie where the emitter says it writes.
func (t *tree) add(e emit.Emitter, files []emit.File) error {
	t.globs = append(t.globs, e.Owns...)
	for _, f := range files {
		within := func(glob string) bool {
			ok, err := path.Match(glob, f.Path)
			return ok && err == nil
		}
		if !slices.ContainsFunc(e.Owns, within) {
			return fmt.Errorf("emitter %s: %s is not within %s", e.Name, f.Path, strings.Join(e.Owns, " "))
		}
		if _, twice := t.want[f.Path]; twice {
			return fmt.Errorf("emitter %s: %s is written twice", e.Name, f.Path)
		}
		t.want[f.Path] = f.Data
	}
	return nil
}

// orphans are files where an emitter writes that none of them wants any more.
func (t *tree) orphans() ([]string, error) {
	var out []string
	for _, g := range t.globs {
		found, err := fs.Glob(os.DirFS(t.root), g)
		if err != nil {
			return nil, fmt.Errorf("glob %s: %w", g, err)
		}
		for _, f := range found {
			if _, wanted := t.want[f]; !wanted {
				out = append(out, f)
			}
		}
	}
	return out, nil
}

// check says what write would change.
func (t *tree) check() error {
	var faults []error
	for _, p := range slices.Sorted(maps.Keys(t.want)) {
		have, err := os.ReadFile(filepath.Join(t.root, p))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			faults = append(faults, fmt.Errorf("missing: %s", p))
		case err != nil:
			faults = append(faults, err)
		case !bytes.Equal(have, t.want[p]):
			faults = append(faults, fmt.Errorf("stale: %s", p))
		}
	}
	orphans, err := t.orphans()
	if err != nil {
		return err
	}
	for _, o := range orphans {
		faults = append(faults, fmt.Errorf("orphan: %s", o))
	}
	if len(faults) > 0 {
		faults = append(faults, fmt.Errorf("%d generated files are out of date: run make generate", len(faults)))
	}
	return errors.Join(faults...)
}

// write brings the disk to what is wanted, touching only what differs.
func (t *tree) write() error {
	orphans, err := t.orphans()
	if err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(t.want)) {
		file := filepath.Join(t.root, p)
		if have, err := os.ReadFile(file); err == nil && bytes.Equal(have, t.want[p]) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, t.want[p], 0o644); err != nil {
			return err
		}
		fmt.Println("wrote", p)
	}
	for _, o := range orphans {
		if err := os.Remove(filepath.Join(t.root, o)); err != nil {
			return err
		}
		fmt.Println("removed", o)
	}
	return nil
}
