package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// offences are repositories that break one rule each, and a part of what the rule then says.
// With an empty part the rule has nothing to say.
var offences = []struct {
	rule  string
	files map[string]string
	want  string
}{
	{"imports", in("exporter/metric/x.go", imports("exporter/telemetry")), "may not import exporter/telemetry"},
	{"imports", in("exporter/source/nvml/x.go", imports("exporter/source/host")), "may not import exporter/source/host"},
	{"imports", in("exporter/source/nvml/x.go", imports("exporter/source/sourcetest")), "may not import exporter/source/sourcetest"},
	{"imports", in("exporter/source/all/x.go", imports("exporter/source/host")), ""},
	{"imports", in("exporter/source/all/x.go", imports("exporter/source/sourcetest")), "may not import"},
	{"imports", in("exporter/source/all/x.go", imports("exporter/sourceless")), "may not import"},
	{"imports", in("exporter/expose/prom/x.go", imports("exporter/source")), "may not import exporter/source"},
	{"imports", in("exporter/expose/prom/x.go", imports("exporter/expose/otlp")), "may not import exporter/expose/otlp"},
	{"imports", in("exporter/config/x.go", imports("spell")), ""},
	{"imports", in("exporter/config/x.go", imports("exporter/metric")), "may not import exporter/metric"},
	{"imports", in("exporter/definition/x.go", imports("")), "may not import ."},
	{"imports", in("exporter/definition/x.go", imports("exporter/telemetry")), "may not import exporter/telemetry"},
	{"imports", in("exporter/definition/x_test.go", imports("")), ""},
	{"imports", in("exporter/cmd/gpumeter/x.go", imports("")), ""},
	{"imports", in("exporter/cmd/gpumeter/x.go", imports("gen/schema")), "may not import gen/schema"},
	{"imports", in("exporter/web/x.go", imports("")), "may not import ."},
	{"imports", in("gen/schema/x.go", imports("gen/resolve")), "may not import gen/resolve"},
	{"imports", in("gen/emit/a/x.go", imports("gen/emit/b")), "may not import gen/emit/b"},
	{"imports", in("gen/x.go", imports("exporter/metric")), "may not import exporter/metric"},
	{"imports", in("gen/x.go", imports("gen/gentest")), "may not import gen/gentest"},
	{"imports", in("gen/schema/x_test.go", imports("gen/gentest")), ""},
	{"imports", in("spell/x.go", imports("exporter/metric")), "may not import exporter/metric"},
	{"imports", in("test/x_test.go", imports("exporter/metric")), "may not import exporter/metric"},
	{"imports", in("exporter/source/host/x_test.go", imports("exporter/source/sourcetest")), ""},
	{"imports", in("exporter/source/host/x_test.go", imports("test/fakenvml")), "may not import test/fakenvml"},
	{"imports", in("exporter/metric/x_test.go", imports("exporter/source/sim")), "may not import exporter/source/sim"},
	{"imports", in("exporter/metric/x_test.go", imports("exporter/metric")), ""},
	{"imports", in("surprise/x.go", "package surprise"), "no rule for surprise"},
	{"imports", in("exporter/surprise/x.go", "package surprise"), "no rule for exporter/surprise"},

	{"package docs", in("spell/x.go", "package spell"), "0 package comments"},
	{"package docs", in("spell/x.go", "// Package spell is.\npackage spell", "spell/y.go", "// Package spell is.\npackage spell"), "2 package comments"},
	{"package docs", in("spell/x.go", "// This is a package.\npackage spell"), `begin with "Package spell "`},
	{"package docs", in("gen/x.go", "// Package main is.\npackage main"), `begin with "Command gen "`},
	{"package docs", in("spell/a.go", "package spell", "spell/a_test.go", "// Package spell is.\npackage spell"), "stands in a test"},

	{"names", in("exporter/util/x.go", "package util"), `"util" says nothing`},
	{"names", in("exporter/metric/types.go", "package metric"), `"types" says nothing`},
	{"names", in("exporter/metric/helpers_test.go", "package metric"), `"helpers" says nothing`},

	{"sizes", in("spell/x.go", "package spell"+strings.Repeat("\n", maxLines+1)), "401 lines"},
	{"sizes", in("spell/zz_x.go", "package spell"+strings.Repeat("\n", maxLines+1)), ""},

	{"generated", in("spell/zz_x.go", "package spell"), "does not say so"},
	{"generated", in("spell/x.go", "// "+said+"\npackage spell"), "not its place or name"},
	{"generated", in("spec/reference/x.md", "# Metrics"), "does not say so"},
	{"generated", in("README.md", "<!-- "+said+" -->"), "not its place or name"},
	{"generated", in("spec/schema/x.json", `{"type": "object"}`), "does not say so"},
	{"generated", in("spec/schema/x.json", `{"$comment": "`+strings.ReplaceAll(said, `"`, `\"`)+`"}`), ""},
	{"generated", in("bundle.zip", "PK"), "does not say so"},
	{"generated", in("bundle.zip", "PK\n\x00"+said), ""},

	{"generated marked", in("spell/zz_x.go", "package spell", ".gitattributes", "* text=auto\n"), "generated: true"},
	{"generated marked", in("spell/x.go", "package spell", ".gitattributes", "spell/** linguist-generated\n"), "generated: false"},
	{"generated marked", in("bundle.zip", "PK"), "generated: true"},

	{"testing", in("exporter/metric/x.go", `package metric; import _ "testing/fstest"`), "imports testing/fstest"},
	{"testing", in("exporter/metric/x_test.go", `package metric; import _ "testing"`), ""},
	{"testing", in("gen/gentest/x.go", `package gentest; import _ "testing"`), ""},
	{"testing", in("gen/x.go", `package main; import _ "github.com/stretchr/testify/require"`), "testify"},

	{"exits", in("exporter/metric/x.go", "package metric; func init() {}"), "func init"},
	{"exits", in("exporter/cmd/gpumeter/x.go", "package main; func init() {}"), "func init"},
	{"exits", in("exporter/web/x.go", "package web; func f() { os.Exit(1) }"), "os.Exit outside main"},
	{"exits", in("gen/schema/x.go", "package schema; func f() { log.Fatalf(``) }"), "log.Fatalf outside main"},
	{"exits", in("gen/main.go", "package main; func main() { os.Exit(1) }"), ""},

	{"global state", in("exporter/web/x.go", "package web; var n int"), "var n is made to be changed"},
	{"global state", in("exporter/web/x.go", "package web; var n = make(map[string]int)"), "var n is made to be changed"},
	{"global state", in("exporter/web/x.go", "package web; var n = sync.Mutex{}"), "var n is made to be changed"},
	{"global state", in("exporter/web/x.go", "package web; var n = 1; func f() { n++ }"), "changes the package-level var n"},
	{"global state", in("exporter/web/x.go", "package web; var n = []int{1}", "exporter/web/y.go", "package web; func f() { n[0] = 2 }"), "changes the package-level var n"},
	{"global state", in("exporter/web/x.go", "package web; var n = 1; func f() { n := 2; n++ }"), ""},
	{"global state", in("exporter/web/x.go", "package web\n\n//go:embed x.tmpl\nvar text string"), ""},

	{"sources tested", in("exporter/source/new/x.go", "package new", "exporter/source/new/x_test.go", "package new"), "exporter/source/new: no test calls"},
	{"sources tested", in("exporter/source/new/x.go", "package new; // sourcetest.SpecIsRead("), "exporter/source/new: no test calls"},
	{"sources tested", in("exporter/source/new/x.go", "package new", "exporter/source/new/x_test.go", "package new; func f() { sourcetest.SpecIsRead[int](t) }"), ""},

	{"sources listed", in("exporter/source/new/x.go", "package new"), "exporter/source/new: exporter/source/all does not call new.New"},
	{"sources listed", in("exporter/source/new/x.go", "package new", "exporter/source/all/x.go", imports("exporter/source/new")), "does not call new.New"},
	{"sources listed", in("exporter/source/new/x.go", "package new", "exporter/source/all/x_test.go", lists("new")), "does not call new.New"},
	{"sources listed", in("exporter/source/new/x.go", "package new", "exporter/source/all/x.go", lists("new")), ""},
	{"sources listed", in("exporter/source/sim/x.go", "package sim"), ""},
	{"sources listed", in("exporter/source/all/x.go", lists("sim")), "notRead in test/sources_test.go has sim"},
	{"sources listed", in("spec/metrics/x.yaml", "metrics: [{name: x.y, sources: {new: {}}}]"), "x.y lists source new"},
	{"sources listed", in("spec/metrics/x.yaml", "metrics: [{name: x.y, sources: {new: {}, sim: {}, feed: {}}}]", "exporter/source/all/x.go", lists("new")), ""},
	{"sources listed", in("spec/metrics/x.yaml", "metrics: {"), "spec/metrics/x.yaml"},

	{"scales", in("exporter/source/new/zz_scales.go", "package new; const scaleX = 1e3", "exporter/source/new/x.go", "package new; const kilo = 1e3"), "scaleX of zz_scales.go is not used"},
	{"scales", in("exporter/source/new/zz_scales.go", "package new; const scaleX = 1e3", "exporter/source/new/x_test.go", "package new; var _ = scaleX"), "scaleX of zz_scales.go is not used"},
	{"scales", in("exporter/source/new/zz_scales.go", "package new; const scaleX = 1e3", "exporter/source/new/x.go", "package new; var _ = scaleX"), ""},

	{"labels", in("spec/scopes.yaml", "scopes: [{name: device, attributes: [a, b, c, d]}]",
		"spec/metrics/x.yaml", "scopes: [device]\nmetrics: [{name: x.y, attributes: [a, b, c, d, e, f, g, h, i, j, k]}]"), "x.y has 15 labels"},
	{"labels", in("spec/scopes.yaml", "scopes: [{name: device, attributes: [a, b, c, d]}]",
		"spec/metrics/x.yaml", "scopes: [device]\nmetrics: [{name: x.y, attributes: [a, b, c, d, e, f, g, h, i, j]}]"), ""},
	{"labels", in("spec/scopes.yaml", "scopes: {"), "spec/scopes.yaml"},

	{"machine paths", in("README.md", "run it in /ro"+"ot/gpumeter"), "README.md:1: names this machine"},
	{"machine paths", in("Makefile", "\n\tcd /wo"+"rk/main"), "Makefile:2: names this machine"},
	{"machine paths", in(".ci/run", "export GOPROX"+"Y=https://proxy.example"), "names this machine"},
	{"machine paths", in("x.bin", "\x00 /ro"+"ot/x"), ""},
	{"machine paths", in("README.md", "https://example.com/wo"+"rk/x and ${HOME}/wo"+"rk/"), ""},

	{"makefile", in("Makefile", "help: ## Say this.\n"), "no target bench"},
	{"makefile", in("Makefile", "build: deps\n"), "target build has no ## line"},
	{"makefile", in("Makefile", strings.Repeat("#\n", 121)), "121 lines"},

	{"commands", in("README.md", "```\nmake run\nmake test\nmake coffee\n```", "Makefile", "run: ## Run.\ntest: ## Test.\n"), "make coffee is no target"},
	{"commands", in("README.md", "`make run`", "Makefile", "run: ## Run.\n"), "does not give both"},

	{"failures heard", in("Makefile", "x:\n\tgo vet ./... || true\n"), "throws a failure away"},
	{"failures heard", in("Makefile", "x:\n\t-go vet ./...\n"), "throws a failure away"},
	{"failures heard", in(".ci/run", "\nset -euo pipefail\nset +e\n"), "throws a failure away"},
	{"failures heard", in(".ci/run", "set -e\n"), "no set -euo pipefail"},

	{"changelog", in("CHANGELOG.md", "- Some fixes\n"), "is not of the form"},
	{"changelog", in("CHANGELOG.md", "- [FEATURE] source/nvml: Power.\n"), ""},

	{"locks", in("exporter/web/x.go", locks("x.mu.Lock(); defer x.mu.Unlock(); x.store.Save(`a`, 1)")), "calls x.store.Save under the lock x.mu"},
	{"locks", in("exporter/web/x.go", locks("x.mu.RLock(); os.Stat(`a`); x.mu.RUnlock()")), "calls os.Stat under the lock x.mu"},
	{"locks", in("exporter/web/x.go", locks("x.mu.Lock(); if true { http.Get(`a`) }; x.mu.Unlock()")), "calls http.Get"},
	{"locks", in("exporter/web/x.go", locks("x.mu.Lock(); c <- 1; x.mu.Unlock()")), "sends to a channel"},
	{"locks", in("exporter/web/x.go", locks("x.mu.Lock(); <-c; x.mu.Unlock()")), "receives from a channel"},
	{"locks", in("exporter/web/x.go", locks("x.mu.Lock(); select { case c <- 1: }; x.mu.Unlock()")), "waits in a select"},
	{"locks", in("exporter/web/x.go", locks("x.set(func() { os.Stat(`a`) })")+"\nfunc (x T) set(f func()) { x.mu.Lock(); defer x.mu.Unlock(); f() }"), "calls os.Stat under the lock set"},
	{"locks", in("exporter/source/nvml/x.go", locks("x.mu.Lock(); x.lib.Shutdown(); x.mu.Unlock()")), "calls x.lib.Shutdown"},
	{"locks", in("exporter/web/x.go", locks("x.mu.Lock(); x.lib.Shutdown(); x.mu.Unlock()")), ""},
	{"locks", in("exporter/web/x.go", locks("x.mu.Lock(); select { case c <- 1: default: }; x.n.Load(); os.Getpid(); x.mu.Unlock(); os.Stat(`a`); c <- 1")), ""},
	{"locks", in("exporter/web/x.go", locks("x.mu.Lock(); defer x.mu.Unlock(); go func() { os.Stat(`a`) }()")), ""},
}

const said = `Code generated by "go run ./gen" from spec. DO NOT ` + `EDIT.`

// in pairs paths with what stands there.
func in(pairs ...string) map[string]string {
	files := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		files[pairs[i]] = pairs[i+1]
	}
	return files
}

// imports is a Go file with one import of this module.
func imports(dir string) string {
	return fmt.Sprintf("package x; import _ %q", strings.TrimSuffix(module+"/"+dir, "/"))
}

// locks is a Go file with a method of that body.
func locks(body string) string {
	return "package x; import (`os`; `net/http`)\nfunc (x T) f() { " + body + " }"
}

// lists is a file that opens a source.
func lists(source string) string {
	return imports("exporter/source/"+source) + "; var _ = " + source + ".New(1)"
}

// Each rule is seen to fail, and to let pass what comes close.
func TestOffences(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range offences {
		at := slices.IndexFunc(rules, func(r rule) bool { return r.name == o.rule })
		if at < 0 {
			t.Fatalf("no rule %q", o.rule)
		}
		got := strings.Join(rules[at].check(newTree(t, o.files)), "\n")
		seen[o.rule] = seen[o.rule] || o.want != ""
		if o.want == "" && got != "" || !strings.Contains(got, o.want) {
			t.Errorf("%s: over %.200q said %q, want %q", o.rule, fmt.Sprint(o.files), got, o.want)
		}
	}
	for _, r := range rules {
		if !seen[r.name] {
			t.Errorf("the rule %q was never seen to fail", r.name)
		}
	}
}

func TestLinkedOffences(t *testing.T) {
	for _, bad := range []string{
		"testing", "testing/internal/testdeps", "github.com/google/go-jsonnet/ast", "github.com/prometheus/prometheus/model/labels",
		"github.com/prometheus/otlptranslator", "k8s.io/client-go/informers", module + "/gen/resolve",
	} {
		if got := checkLinked([]string{"fmt", bad}); len(got) != 1 {
			t.Errorf("%s: %q, want one offence", bad, got)
		}
	}
	if got := checkLinked([]string{"fmt", "testingx", "github.com/prometheus/procfs", "k8s.io/client-go/metadata", module + "/general"}); len(got) > 0 {
		t.Errorf("said %q of what may be linked", got)
	}
}
