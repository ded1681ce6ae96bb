package test

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// notRead maps the folders of exporter/source and the sources of the spec that are not in
// exporter/source/all to the reason.
var notRead = map[string]string{
	"all":         "it is the list",
	"sourcetest":  "it holds the test that all sources share",
	"sim":         "it simulates a node, and is read only on request",
	"feed":        "package snapshot fills in its metrics",
	"health":      "package health fills in its metrics",
	"attribution": "package attribution fills in its metrics",
	"self":        "package self fills in its metrics",
}

// checkSourcesListed wants each source that has code, and each that a metric of the spec names, in
// exporter/source/all.
func checkSourcesListed(t *tree) []string {
	has, listed := map[string]bool{}, map[string]bool{}
	for _, f := range t.code {
		rest, ok := strings.CutPrefix(f.dir, "exporter/source/")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, "/")
		has[name] = true
		if name != "all" || f.test {
			continue
		}
		for _, imp := range f.Imports {
			if dir, ours := local(imp.Path.Value); ours && calls(f.File, path.Base(dir), "New") {
				listed[strings.TrimPrefix(dir, "exporter/source/")] = true
			}
		}
	}
	named, out := namedSources(t)
	for name := range listed {
		if why, not := notRead[name]; not {
			out = append(out, fmt.Sprintf("exporter/source/all: calls %s.New, and notRead in test/sources_test.go has %s: %s", name, name, why))
		}
	}
	for name := range has {
		if _, not := notRead[name]; !not && !listed[name] {
			out = append(out, fmt.Sprintf("exporter/source/%s: exporter/source/all does not call %s.New, so nobody reads it", name, name))
		}
	}
	for name, metric := range named {
		if _, not := notRead[name]; !not && !listed[name] && !has[name] {
			out = append(out, fmt.Sprintf("spec: %s lists source %s, and exporter/source/all does not call %s.New", metric, name, name))
		}
	}
	slices.Sort(out)
	return out
}

// namedSources maps each source that a metric of the spec lists to one such metric.
func namedSources(t *tree) (named map[string]string, offences []string) {
	named = map[string]string{}
	for _, p := range t.paths() {
		if path.Dir(p) != "spec/metrics" {
			continue
		}
		var group struct {
			Metrics []struct {
				Name    string
				Sources map[string]any
			}
		}
		if err := yaml.Unmarshal([]byte(t.files[p]), &group); err != nil {
			offences = append(offences, p+": "+err.Error())
		}
		for _, m := range group.Metrics {
			for source := range m.Sources {
				named[source] = m.Name
			}
		}
	}
	return named, offences
}

// checkScales wants each factor of the spec used by the code of its source, which then has no other.
func checkScales(t *tree) []string {
	type constant struct{ dir, name string }
	declared, used := map[constant]bool{}, map[constant]bool{}
	for _, f := range t.code {
		if f.test || !within(f.dir, "exporter/source") {
			continue
		}
		factors := path.Base(f.path) == "zz_scales.go"
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.ValueSpec:
				if factors {
					for _, name := range x.Names {
						declared[constant{f.dir, name.Name}] = true
					}
				}
			case *ast.Ident:
				used[constant{f.dir, x.Name}] = used[constant{f.dir, x.Name}] || !factors
			}
			return true
		})
	}
	var out []string
	for c := range declared {
		if !used[c] {
			out = append(out, fmt.Sprintf("%s: %s of zz_scales.go is not used: the code scales by another factor than the spec, or does not read the metric", c.dir, c.name))
		}
	}
	slices.Sort(out)
	return out
}
