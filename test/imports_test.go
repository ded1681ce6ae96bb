package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mayImport says what a package and those below it may import of this module: a name means that
// package alone, a name with /... also those below it. A package no key covers is an offence.
var mayImport = rooms{
	".":                    {},
	"spell":                {},
	"gen":                  {"gen/..."},
	"gen/schema":           {"spell"},
	"gen/promql":           {},
	"gen/resolve":          {"gen/promql", "gen/schema", "spell"},
	"gen/emit":             {"gen/emit", "gen/promql", "gen/resolve", "gen/schema"},
	"gen/emit/chart":       {"gen/emit", "gen/emit/dashboard", "gen/emit/promrules", "gen/resolve"},
	"gen/bundle":           {"gen/emit"},
	"gen/gentest":          {"gen/emit", "gen/resolve", "gen/schema"},
	"exporter/metric":      {},
	"exporter/telemetry":   {"exporter/metric"},
	"exporter/safefile":    {},
	"exporter/parts":       {},
	"exporter/state":       {"exporter/safefile"},
	"exporter/pci":         {},
	"exporter/kernellog":   {},
	"exporter/source":      {"exporter/source", "exporter/metric", "exporter/telemetry"},
	"exporter/source/all":  {"exporter/source/..."},
	"exporter/source/nvml": {"exporter/source", "exporter/metric", "exporter/telemetry", "exporter/kernellog", "exporter/pci", "exporter/state"},
	"exporter/source/sim":  {"exporter/source", "exporter/metric", "exporter/telemetry", "spell"},
	"exporter/snapshot":    {"exporter/parts", "exporter/source", "exporter/metric", "exporter/telemetry"},
	"exporter/downtime":    {"exporter/state"},
	"exporter/inventory":   {"exporter/pci", "exporter/state", "exporter/snapshot", "exporter/telemetry"},
	"exporter/health":      {"exporter/snapshot", "exporter/telemetry", "exporter/metric"},
	"exporter/attribution": {"exporter/attribution", "exporter/safefile", "exporter/snapshot", "exporter/telemetry", "exporter/metric"},
	"exporter/diagnosis":   {"exporter/pci", "exporter/snapshot", "exporter/source", "exporter/telemetry"},
	"exporter/expose":      {"exporter/expose", "exporter/snapshot", "exporter/metric", "exporter/telemetry"},
	"exporter/self":        {"exporter/snapshot", "exporter/telemetry", "exporter/metric"},
	"exporter/doctor":      {"exporter/attribution", "exporter/attribution/kubernetes", "exporter/attribution/slurm", "exporter/diagnosis", "exporter/snapshot", "exporter/telemetry", "exporter/metric"},
	"exporter/web":         {"exporter/safefile", "exporter/web/...", "exporter/snapshot", "exporter/self", "exporter/expose", "exporter/expose/prom", "exporter/metric", "exporter/telemetry"},
	"exporter/config":      {"exporter/safefile", "spell"},
	"exporter/definition":  {"exporter/metric", "spell"},
	"exporter/cmd":         {"exporter/...", ".", "spell"},
	"test":                 {"test/..."},

	"exporter/expose/stdout":          {"exporter/expose", "exporter/diagnosis", "exporter/snapshot", "exporter/metric", "exporter/telemetry"},
	"exporter/attribution/kubernetes": {"exporter/parts", "exporter/safefile", "exporter/telemetry", "exporter/metric"}, // it knows nothing of readings
}

// testsMayImport is what the tests of a package may import beside the package itself, those below
// it, and what the package may import.
var testsMayImport = rooms{
	"gen":                  {"gen/gentest"},
	"exporter/source":      {"exporter/source/sourcetest"},
	"exporter/source/nvml": {"exporter/source/sourcetest", "test/fakenvml"},
	"exporter/snapshot":    {"exporter/source/sourcetest", "exporter/source/sim"},
	"exporter/expose":      {"exporter/source", "exporter/source/sim"},
	"exporter/definition":  {".", "exporter/telemetry"},
	"exporter/self":        {"exporter/source", "exporter/source/sourcetest", "exporter/source/sim"},
	"exporter/health":      {"exporter/source", "exporter/source/sourcetest", "exporter/source/sim"},
	"exporter/doctor":      {"exporter/attribution", "exporter/attribution/kubernetes", "exporter/attribution/slurm", "exporter/diagnosis", "exporter/snapshot", "exporter/telemetry", "exporter/metric"},
	"exporter/web":         {"exporter/source", "exporter/source/sim"},
	"exporter/cmd":         {"test/..."},
}

// onlyForTests are packages the tests of others share. They may import testing, and are imported
// only where they are named: no /... leads to them.
var onlyForTests = []string{"exporter/source/sourcetest", "gen/gentest"}

// checkImports holds the table.
func checkImports(t *tree) []string {
	var out []string
	for _, f := range t.code {
		allowed, ok := mayImport.of(f.dir)
		if !ok {
			out = append(out, fmt.Sprintf("%s: no rule for %s in mayImport", f.path, f.dir))
			continue
		}
		if f.test {
			more, _ := testsMayImport.of(f.dir)
			allowed = append(slices.Clone(allowed), append(more, f.dir, f.dir+"/...")...)
		}
		for _, imp := range f.Imports {
			if p, ours := local(imp.Path.Value); ours && !covered(p, allowed) {
				out = append(out, fmt.Sprintf("%s: may not import %s", f.path, p))
			}
		}
	}
	return out
}

// local returns the folder of an import of this module.
func local(quoted string) (dir string, ours bool) {
	p := strings.Trim(quoted, `"`)
	if p == module {
		return ".", true
	}
	return strings.CutPrefix(p, module+"/")
}

func covered(p string, allowed []string) bool {
	for _, a := range allowed {
		below, wide := strings.CutSuffix(a, "/...")
		if p == a || wide && within(p, below) && !slices.Contains(onlyForTests, p) {
			return true
		}
	}
	return false
}

// notLinked are packages only the generator, the tools or the tests need.
var notLinked = []string{
	module + "/gen", module + "/test", module + "/exporter/source/sourcetest",
	"github.com/prometheus/prometheus",
	"github.com/prometheus/otlptranslator",
	"github.com/prometheus-operator",
	"github.com/grafana/grafana-foundation-sdk",
	"github.com/google/go-jsonnet",
	"github.com/santhosh-tekuri/jsonschema",
	"github.com/rogpeppe/go-internal",
	"github.com/stretchr/testify",
	"k8s.io/client-go/informers",
	"k8s.io/client-go/kubernetes",
	"testing",
}

// checkLinked says which of the packages a program is made of have no business there.
func checkLinked(deps []string) []string {
	var out []string
	for _, d := range deps {
		for _, bad := range notLinked {
			if within(d, bad) {
				out = append(out, "the exporter links "+d)
			}
		}
	}
	return out
}

// The exporter links nothing that only the generator or a test needs, with cgo and without.
func TestLinked(t *testing.T) {
	main := filepath.Join("..", "exporter", "cmd", "gpumeter")
	for _, cgo := range []string{"0", "1"} {
		list := exec.Command("go", "list", "-deps", ".")
		list.Dir, list.Env = main, append(os.Environ(), "CGO_ENABLED="+cgo)
		var said strings.Builder
		list.Stderr = &said
		deps, err := list.Output()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, said.String())
		}
		lines := strings.Fields(string(deps))
		if !slices.Contains(lines, module+"/exporter/metric") {
			t.Errorf("go list names %d packages, none of ours", len(lines))
		}
		for _, offence := range checkLinked(lines) {
			t.Errorf("CGO_ENABLED=%s: %s", cgo, offence)
		}
	}
}
