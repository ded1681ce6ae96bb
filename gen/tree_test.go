package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/gentest"
	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

// repository is a new one, with the sample spec and everything made of it by two emitters.
func repository(t *testing.T) (root string, emitters []emit.Emitter) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "a [b] *c") // as a glob, it would match nothing
	if err := os.CopyFS(filepath.Join(root, "spec"), gentest.Sample()); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(root, fstest.MapFS{"mixin/mixin.libsonnet": {Data: []byte("{ by: 'hand' }")}}); err != nil {
		t.Fatal(err)
	}
	emitters = []emit.Emitter{
		{Name: "one", Owns: []string{"out/zz_*.txt"}, Run: func(m *resolve.Model) ([]emit.File, error) {
			var files []emit.File
			for _, g := range m.Groups {
				files = append(files, emit.File{Path: "out/zz_" + g.Group.Group + ".txt", Data: []byte(g.Brief)})
			}
			return files, nil
		}},
		{Name: "two", Owns: []string{"other/page.txt"}, Run: func(*resolve.Model) ([]emit.File, error) {
			return []emit.File{{Path: "other/page.txt", Data: []byte("page")}}, nil
		}},
	}
	if err := run(root, emitters, false); err != nil {
		t.Fatal(err)
	}
	if err := run(root, emitters, true); err != nil {
		t.Fatalf("not clean when just written: %v", err)
	}
	return root, emitters
}

func TestCheckAndMend(t *testing.T) {
	root, emitters := repository(t)
	at := func(file string) string { return filepath.Join(root, file) }
	for name, x := range map[string]struct {
		harm func() error
		want string
	}{
		"stale":   {func() error { return os.WriteFile(at("out/zz_power.txt"), []byte("by hand"), 0o644) }, "stale: out/zz_power.txt\n1 generated files"},
		"missing": {func() error { return os.Remove(at("out/zz_power.txt")) }, "missing: out/zz_power.txt\n1 generated files"},
		"orphan":  {func() error { return os.WriteFile(at("out/zz_gone.txt"), nil, 0o644) }, "orphan: out/zz_gone.txt\n1 generated files"},
		"folder":  {func() error { return os.RemoveAll(at("other")) }, "missing: other/page.txt\n1 generated files"},
		"several": {func() error {
			return errors.Join(os.Remove(at("other/page.txt")), os.WriteFile(at("out/zz_a.txt"), nil, 0o644))
		}, "missing: other/page.txt\norphan: out/zz_a.txt\n2 generated files"},
		"the bundle, stale":   {func() error { return edit(at("mixin/mixin.libsonnet"), "hand", "Hand") }, "stale: bundle.zip\n1 generated files"},
		"the bundle, missing": {func() error { return os.Remove(at("bundle.zip")) }, "missing: bundle.zip\n1 generated files"},
		"the spec":            {func() error { return edit(at("spec/metrics/power.yaml"), "Electricity.", "Current.") }, "stale: out/zz_power.txt\n1 generated files"},
	} {
		if err := x.harm(); err != nil {
			t.Fatal(err)
		}
		if err := run(root, emitters, true); err == nil || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%s: check says %v, want %s", name, err, x.want)
		}
		if err := run(root, emitters, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := run(root, emitters, true); err != nil {
			t.Errorf("%s is not mended: %v", name, err)
		}
	}
	// What no emitter owns is left alone.
	if err := os.WriteFile(at("out/by_hand.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(run(root, emitters, true), run(root, emitters, false)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(at("out/by_hand.txt")); err != nil {
		t.Error(err)
	}
}

func edit(file, old, new string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.Replace(string(text), old, new, 1)), 0o644)
}

// Whatever is wrong with one emitter, or with the spec, nothing is written and nothing removed.
func TestFaultWritesNothing(t *testing.T) {
	faulty := func(files []emit.File, err error) emit.Emitter {
		return emit.Emitter{Name: "faulty", Owns: []string{"bad/*.txt"}, Run: func(*resolve.Model) ([]emit.File, error) { return files, err }}
	}
	for want, e := range map[string]emit.Emitter{
		"emitter faulty: no ink":                                                                  faulty(nil, errors.New("no ink")),
		"emitter faulty: out/x.txt is not within bad/*.txt":                                       faulty([]emit.File{{Path: "out/x.txt"}}, nil),
		"emitter faulty: bad/x.txt is written twice":                                              faulty([]emit.File{{Path: "bad/x.txt"}, {Path: "bad/x.txt"}}, nil),
		"spec/metrics/power.yaml:3: group power: a brief is a sentence and ends with a full stop": {},
	} {
		root, emitters := repository(t)
		if e.Run != nil {
			emitters = append(emitters, e)
		} else if err := edit(filepath.Join(root, "spec/metrics/power.yaml"), "group: power\nscopes: [device]\nbrief: Electricity.", "\n\ngroup: power\nscopes: [device]\nbrief: Electricity"); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{"out/zz_power.txt", "out/zz_orphan.txt"} {
			if err := os.WriteFile(filepath.Join(root, f), []byte("as it was"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		err := run(root, emitters, false)
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if faults := (schema.Faults)(nil); errors.As(err, &faults) != (e.Run == nil) {
			t.Errorf("%v: faults of the spec: %v", err, faults)
		}
		for _, f := range []string{"out/zz_power.txt", "out/zz_orphan.txt"} {
			if text, err := os.ReadFile(filepath.Join(root, f)); err != nil || string(text) != "as it was" {
				t.Errorf("%s: %s was touched: %q, %v", want, f, text, err)
			}
		}
	}
}

// Each emitter says what it is, and no two of them own the same files.
func TestEmitters(t *testing.T) {
	names, globs := map[string]bool{}, map[string]bool{}
	for _, e := range emitters {
		if e.Name == "" || e.Doc == "" || len(e.Owns) == 0 || names[e.Name] || slices.ContainsFunc(e.Owns, func(g string) bool { return globs[g] }) {
			t.Errorf("emitter %q (%q) lacks something or is there twice", e.Name, e.Owns)
		}
		if _, err := os.Stat(filepath.Join("emit", e.Name)); err != nil {
			t.Error(err)
		}
		names[e.Name] = true
		for _, glob := range e.Owns {
			globs[glob] = true
		}
	}
}
