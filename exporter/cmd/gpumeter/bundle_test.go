package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/gpumeter/gpumeter"
	"github.com/gpumeter/gpumeter/exporter/config"
)

// smallBundle has one rule file of each pack.
func smallBundle() fstest.MapFS {
	out := fstest.MapFS{}
	for name, pack := range map[string]string{"fleet": "core", "recording": "recording", "extra": "extra", "compat/dcgm": "compat"} {
		out["rules/objects/"+name+".yaml"] = &fstest.MapFile{Data: []byte("# Object " + name + ".\nmetadata:\n  labels:\n    app.kubernetes.io/component: " + pack + "\n")}
		out["rules/plain/"+name+".yaml"] = &fstest.MapFile{Data: []byte("# Plain " + name + ".\ngroups:\n  - name: " + name + "\n")}
	}
	for _, p := range []string{"mixin/config.libsonnet", "mixin/generated/config.libsonnet", "mixin/generated/fleet.libsonnet", "spec/semconv/power.yaml"} {
		out[p] = &fstest.MapFile{Data: []byte("text of " + p)}
	}
	return out
}

func TestBundleWords(t *testing.T) {
	b, err := read(smallBundle())
	if err != nil {
		t.Fatal(err)
	}
	for words, want := range map[string]string{
		"rules":                          "rules/objects/fleet.yaml rules/objects/recording.yaml",
		"rules/":                         "rules/objects/fleet.yaml rules/objects/recording.yaml",
		"rules +extra":                   "rules/objects/extra.yaml rules/objects/fleet.yaml rules/objects/recording.yaml",
		"rules +plain":                   "rules/plain/fleet.yaml rules/plain/recording.yaml",
		"rules +plain +extra":            "rules/plain/extra.yaml rules/plain/fleet.yaml rules/plain/recording.yaml",
		"rules rules/objects/compat":     "rules/objects/compat/dcgm.yaml rules/objects/fleet.yaml rules/objects/recording.yaml",
		"rules rules/objects/fleet.yaml": "rules/objects/fleet.yaml rules/objects/recording.yaml",
		"rules/objects":                  "rules/objects/compat/dcgm.yaml rules/objects/extra.yaml rules/objects/fleet.yaml rules/objects/recording.yaml",
		"rules/objects/*.yaml":           "rules/objects/extra.yaml rules/objects/fleet.yaml rules/objects/recording.yaml",
		"rules/*/compat":                 "rules/objects/compat/dcgm.yaml rules/plain/compat/dcgm.yaml",
		"mixin/generated":                "mixin/generated/config.libsonnet mixin/generated/fleet.libsonnet",
		"config.libsonnet":               "mixin/config.libsonnet mixin/generated/config.libsonnet",
		"mixin registry":                 "mixin/config.libsonnet mixin/generated/config.libsonnet mixin/generated/fleet.libsonnet spec/semconv/power.yaml",
		"./spec":                         "spec/semconv/power.yaml",
		"p*.yaml":                        "spec/semconv/power.yaml",
		"":                               strings.Join(b.paths(), " "),
		"*":                              strings.Join(b.paths(), " "),
	} {
		c := config.Bundle{What: strings.Fields(words)}
		c.What = slices.DeleteFunc(c.What, func(w string) bool { return strings.HasPrefix(w, "+") })
		c.Extra, c.Plain = strings.Contains(words, "+extra"), strings.Contains(words, "+plain")
		got, err := b.asked(c)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v, want %s", words, got, err, want)
		}
	}
}

// What is not there is named with what it may be, all of it at once; what makes no single text is not printed.
func TestBundleAskedWrongly(t *testing.T) {
	for words, want := range map[string]string{
		"rulse mixin nowhere-near": "bundle: nothing is called \"rulse\"; did you mean \"rules\"?\nbundle: nothing is called \"nowhere-near\"",
		"rules/objects/flet.yaml":  `bundle: nothing is called "rules/objects/flet.yaml"; did you mean "rules/objects/fleet.yaml"?`,
		"flete.yaml":               `bundle: nothing is called "flete.yaml"; did you mean "fleet.yaml"?`,
		"rules/**/x":               `bundle: nothing is called "rules/**/x"`,
		"/rules":                   `bundle: nothing is called "/rules"; did you mean "rules"?`,
		"../rules/objects":         `bundle: nothing is called "../rules/objects"; did you mean "rules/objects"?`,
		"[":                        `bundle: "[": syntax error in pattern`,
		"config.libsonnet":         "bundle: 2 files do not make one text; --output=DIR writes them:\n  mixin/config.libsonnet\n  mixin/generated/config.libsonnet",
		"rules mixin/generated/f*": "bundle: 3 files do not make one text; --output=DIR writes them:\n  mixin/generated/fleet.libsonnet\n  rules/objects/fleet.yaml\n  rules/objects/recording.yaml",
	} {
		var out strings.Builder
		err := unpack(config.Bundle{What: strings.Fields(words)}, smallBundle(), &out)
		if !errors.Is(err, errAsked) || err.Error() != want || out.Len() > 0 {
			t.Errorf("%s: printed %q, said %v, want %s", words, out.String(), err, want)
		}
	}
}

func TestBundlePrinted(t *testing.T) {
	for words, want := range map[string]string{
		"mixin/config.libsonnet":         "text of mixin/config.libsonnet",
		"rules/plain/fleet.yaml":         "# Plain fleet.\ngroups:\n  - name: fleet\n",
		"rules/plain/[fr]*.yaml":         "groups:\n# Plain fleet.\n  - name: fleet\n# Plain recording.\n  - name: recording\n",
		"rules/objects/compat/dcgm.yaml": "# Object compat/dcgm.\nmetadata:\n  labels:\n    app.kubernetes.io/component: compat\n",
		"rules": "# Object fleet.\nmetadata:\n  labels:\n    app.kubernetes.io/component: core\n---\n" +
			"# Object recording.\nmetadata:\n  labels:\n    app.kubernetes.io/component: recording\n",
	} {
		var out strings.Builder
		if err := unpack(config.Bundle{What: strings.Fields(words)}, smallBundle(), &out); err != nil || out.String() != want {
			t.Errorf("%s: %v, printed\n%s\nwant\n%s", words, err, out.String(), want)
		}
	}
}

// A damaged bundle is nobody's wrong word.
func TestBundleDamaged(t *testing.T) {
	for file, text := range map[string]string{"rules/objects/fleet.yaml": "a: [", "rules/plain/fleet.yaml": "# Nothing.\n"} {
		root := smallBundle()
		root[file].Data = []byte(text)
		c := config.Bundle{What: []string{"rules"}, Plain: strings.Contains(file, "plain")}
		if err := unpack(c, root, io.Discard); err == nil || errors.Is(err, errAsked) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// What is in the way stays as it is, what a link leads to outside is not touched, and no part of a file is left.
func TestBundleWritten(t *testing.T) {
	const file = "rules/objects/fleet.yaml"
	for name, x := range map[string]struct {
		before func(dir, outside string) error
		fails  bool
	}{
		"nothing before": {func(dir, _ string) error { return os.Remove(dir) }, false},
		"an older file": {func(dir, _ string) error {
			return os.CopyFS(dir, fstest.MapFS{file: {Data: []byte("older, and longer than the new one: " + strings.Repeat("x", 1000))}})
		}, false},
		"a file for the directory": {func(dir, _ string) error { return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600)) }, true},
		"a file for a folder":      {func(dir, _ string) error { return os.WriteFile(filepath.Join(dir, "rules"), nil, 0o600) }, true},
		"a folder for the file":    {func(dir, _ string) error { return os.MkdirAll(filepath.Join(dir, file), 0o700) }, true},
		"a link out for a folder":  {func(dir, outside string) error { return os.Symlink(outside, filepath.Join(dir, "rules")) }, true},
		"a link out for the file": {func(dir, outside string) error {
			return errors.Join(os.MkdirAll(filepath.Join(dir, "rules/objects"), 0o700), os.Symlink(filepath.Join(outside, "kept"), filepath.Join(dir, file)))
		}, false}, // the link is replaced
	} {
		t.Run(name, func(t *testing.T) {
			dir, outside := filepath.Join(t.TempDir(), "out"), t.TempDir()
			err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(outside, "kept"), []byte("kept"), 0o600), x.before(dir, outside))
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			err = unpack(config.Bundle{What: []string{file}, Output: dir}, smallBundle(), &out)
			if x.fails {
				if err == nil || !strings.Contains(err.Error(), dir) || errors.Is(err, errAsked) || out.Len() > 0 {
					t.Errorf("said %v, printed %q", err, out.String())
				}
			} else if text, wrong := os.ReadFile(filepath.Join(dir, file)); err != nil || !bytes.Equal(text, smallBundle()[file].Data) || out.String() != filepath.Join(dir, file)+"\n" {
				t.Errorf("%v, %v, printed %q, wrote\n%s", err, wrong, out.String(), text)
			}
			if kept, err := os.ReadFile(filepath.Join(outside, "kept")); err != nil || string(kept) != "kept" {
				t.Errorf("outside: %q, %v", kept, err)
			}
			for _, below := range []string{dir, outside} {
				err := filepath.WalkDir(below, func(p string, _ fs.DirEntry, err error) error {
					if strings.HasSuffix(p, ".next") || below == outside && strings.HasSuffix(p, ".yaml") {
						t.Errorf("%s was left", p)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// printed is what the real bundle prints as the rules.
func printed(t *testing.T, c config.Bundle) []byte {
	t.Helper()
	root, err := gpumeter.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c.What = []string{"rules"}
	if err := unpack(c, root, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// kubectl's decoder finds objects, and each once.
func TestBundleForKubectl(t *testing.T) {
	for extra, want := range map[bool]string{
		false: "gpumeter-fleet gpumeter-inference gpumeter-infrastructure gpumeter-recording",
		true:  "gpumeter-extra gpumeter-fleet gpumeter-inference gpumeter-infrastructure gpumeter-recording",
	} {
		var names []string
		for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(printed(t, config.Bundle{Extra: extra})), 4096); ; {
			var o unstructured.Unstructured
			err := d.Decode(&o)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if o.GetKind() != "PrometheusRule" || o.GetAPIVersion() != "monitoring.coreos.com/v1" {
				t.Errorf("%s is a %s of %s", o.GetName(), o.GetKind(), o.GetAPIVersion())
			}
			names = append(names, o.GetName())
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("extra: %v: %s, want %s", extra, got, want)
		}
	}
}

// Prometheus takes the one plain file, with the seventeen alerts or those and the extra ones.
func TestBundleForPrometheus(t *testing.T) {
	alerts := func(c config.Bundle) (n int) {
		groups, errs := rulefmt.Parse(printed(t, c), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				if r.Alert != "" {
					n++
				}
			}
		}
		return n
	}
	core, all := alerts(config.Bundle{Plain: true}), alerts(config.Bundle{Plain: true, Extra: true})
	if core != 17 || all <= core {
		t.Errorf("%d alerts, and %d with the extra ones", core, all)
	}
}
