package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/spell"
)

// errAsked says that what is asked for is not in the bundle, or can not be printed.
var errAsked = errors.New("bundle")

// Where the rules lie: those for Prometheus' operator, and the same for a Prometheus that reads files.
const (
	objects = "rules/objects/"
	plain   = "rules/plain/"
)

// bundle is what the binary carries, by path.
type bundle map[string][]byte

// unpack lists the bundle, prints what is asked of it, or writes that below a directory.
func unpack(c config.Bundle, root fs.FS, out io.Writer) error {
	b, err := read(root)
	if err != nil {
		return err
	}
	asked, err := b.asked(c)
	if err != nil {
		return err
	}
	var text []byte
	switch {
	case c.Output != "":
		text, err = b.write(asked, c.Output)
	case len(c.What) == 0:
		text = b.list()
	default:
		text, err = b.join(asked)
	}
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

func read(root fs.FS) (bundle, error) {
	b := bundle{}
	err := fs.WalkDir(root, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b[p], err = fs.ReadFile(root, p)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	return b, nil
}

func (b bundle) paths() []string { return slices.Sorted(maps.Keys(b)) }

func (b bundle) list() []byte {
	var out bytes.Buffer
	wide := 0
	for p := range b {
		wide = max(wide, len(p))
	}
	for _, p := range b.paths() {
		fmt.Fprintf(&out, "%-*s %7d\n", wide, p, len(b[p]))
	}
	return out.Bytes()
}

// asked are the paths that the words mean, each once; all without a word.
func (b bundle) asked(c config.Bundle) ([]string, error) {
	if len(c.What) == 0 {
		return b.paths(), nil
	}
	var out []string
	var faults []error
	for _, word := range c.What {
		hits, err := b.meant(path.Clean(word), c)
		out, faults = append(out, hits...), append(faults, err)
	}
	slices.Sort(out)
	return slices.Compact(out), errors.Join(faults...)
}

// meant are the paths of what a word means: a file or a folder, by its path, its name or a glob of these, or
// one of two words of their own. That rules are those one installs is so whether they are printed or written.
func (b bundle) meant(word string, c config.Bundle) ([]string, error) {
	switch word {
	case "rules":
		return b.rules(c.Extra, c.Plain)
	case "registry":
		word = "spec/semconv"
	}
	var hits []string
	known := []string{"rules", "registry"}
	for _, p := range b.paths() {
		names := []string{path.Base(p)}
		for q := p; q != "."; q = path.Dir(q) {
			names = append(names, q)
		}
		for _, name := range names {
			ok, err := path.Match(word, name)
			if err != nil {
				return nil, fmt.Errorf("%w: %q: %w", errAsked, word, err)
			}
			if ok {
				hits = append(hits, p)
			}
		}
		known = append(known, names...)
	}
	if len(hits) == 0 {
		return nil, fmt.Errorf("%w: nothing is called %q%s", errAsked, word, spell.Suggest(word, known))
	}
	return hits, nil
}

// rules are the paths of the core alerts and the recording rules, and of the extra alerts where they are asked
// for. The objects say what they hold; the plain files are called as they are.
func (b bundle) rules(extra, asPlain bool) ([]string, error) {
	packs := []string{"core", "recording"}
	if extra {
		packs = append(packs, "extra")
	}
	var out []string
	for _, p := range b.paths() {
		name, ok := strings.CutPrefix(p, objects)
		if !ok {
			continue
		}
		var object struct {
			Metadata struct {
				Labels map[string]string `yaml:"labels"`
			} `yaml:"metadata"`
		}
		if err := yaml.Unmarshal(b[p], &object); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		if !slices.Contains(packs, object.Metadata.Labels["app.kubernetes.io/component"]) {
			continue
		}
		if asPlain {
			p = plain + name
		}
		out = append(out, p)
	}
	return out, nil
}

// join makes one text of files that can be one: objects follow each other, plain files become one with the
// groups of all.
func (b bundle) join(asked []string) ([]byte, error) {
	all := func(dir string) bool {
		return !slices.ContainsFunc(asked, func(p string) bool { return !strings.HasPrefix(p, dir) })
	}
	var parts [][]byte
	for _, p := range asked {
		parts = append(parts, b[p])
	}
	switch {
	case len(asked) == 1:
		return parts[0], nil
	case all(objects):
		return bytes.Join(parts, []byte("---\n")), nil
	case all(plain):
		out := []byte("groups:\n")
		for i, part := range parts {
			head, groups, ok := bytes.Cut(part, []byte("groups:\n"))
			if !ok {
				return nil, fmt.Errorf("%s: no groups", asked[i])
			}
			out = append(append(out, head...), groups...)
		}
		return out, nil
	}
	return nil, fmt.Errorf("%w: %d files do not make one text; --output=DIR writes them:\n  %s", errAsked, len(asked), strings.Join(asked, "\n  "))
}

// write writes the files below a directory, which no link leads out of, and returns their names.
func (b bundle) write(asked []string, dir string) (names []byte, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("--output: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("--output: %w", err)
	}
	defer root.Close() //nolint:errcheck // a directory
	for _, p := range asked {
		name := filepath.Join(dir, p)
		if err := place(root, p, b[p]); err != nil {
			return nil, fmt.Errorf("%s is not written: %w", name, err)
		}
		names = fmt.Appendln(names, name)
	}
	return names, nil
}

// place writes a file beside where it is to be, so that what was there stays whole until all of the new one is.
func place(root *os.Root, p string, data []byte) error {
	if err := root.MkdirAll(path.Dir(p), 0o755); err != nil {
		return err
	}
	next := p + "." + rand.Text() + ".next"
	f, err := root.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer root.Remove(next) //nolint:errcheck // gone when all went well
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return root.Rename(next, p)
}
