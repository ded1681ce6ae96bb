package test

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// maxLines is the most a file written by hand may have.
const maxLines = 400

// checkDocs wants one package comment per package, which begins as Go's documentation does.
func checkDocs(t *tree) []string {
	type pkg struct{ product, docs int }
	pkgs := map[string]*pkg{}
	var out []string
	for _, f := range t.code {
		if strings.HasSuffix(f.Name.Name, "_test") {
			continue
		}
		p := pkgs[f.dir]
		if p == nil {
			p = &pkg{}
			pkgs[f.dir] = p
		}
		if !f.test {
			p.product++
		}
		if f.Doc == nil {
			continue
		}
		p.docs++
		start := "Package " + f.Name.Name + " "
		if f.Name.Name == "main" {
			start = "Command " + path.Base(f.dir) + " "
		}
		if !strings.HasPrefix(f.Doc.Text(), start) {
			out = append(out, fmt.Sprintf("%s: the package comment does not begin with %q", f.path, start))
		}
		if f.test && p.product > 0 {
			out = append(out, fmt.Sprintf("%s: the package comment stands in a test", f.path))
		}
	}
	for dir, p := range pkgs {
		if p.docs != 1 {
			out = append(out, fmt.Sprintf("%s: %d package comments; want 1", dir, p.docs))
		}
	}
	slices.Sort(out)
	return out
}

// Names that say what kind of thing is inside, or nothing, where a topic belongs.
var emptyNames = []string{
	"util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "pkg", "lib",
	"types", "consts", "constants", "vars", "variables", "interfaces", "functions",
}

// checkNames wants folders and Go files named by topic.
func checkNames(t *tree) []string {
	var out []string
	for _, f := range t.code {
		for word := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSuffix(f.path, ".go"), "_test"), "/") {
			if slices.Contains(emptyNames, word) {
				out = append(out, fmt.Sprintf("%s: %q says nothing; name it by its topic", f.path, word))
			}
		}
	}
	return out
}

// checkSizes wants files that can be read in one sitting.
func checkSizes(t *tree) []string {
	var out []string
	for _, f := range t.code {
		if n := strings.Count(t.files[f.path], "\n"); !f.generated && n > maxLines {
			out = append(out, fmt.Sprintf("%s: %d lines, the most is %d; split it by topic", f.path, n, maxLines))
		}
	}
	return out
}

// checkTesting keeps testing out of what is shipped.
func checkTesting(t *tree) []string {
	var out []string
	for _, f := range t.product() {
		if slices.Contains(onlyForTests, f.dir) {
			continue
		}
		for _, imp := range f.Imports {
			p := strings.Trim(imp.Path.Value, `"`)
			if within(p, "testing") || within(p, "github.com/stretchr/testify") {
				out = append(out, fmt.Sprintf("%s: imports %s outside a test", f.path, p))
			}
		}
	}
	return out
}

// checkExits lets only main end the process, and nothing run by being imported.
func checkExits(t *tree) []string {
	var out []string
	for _, f := range t.product() {
		main := within(f.dir, "exporter/cmd") || f.path == "gen/main.go"
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.FuncDecl:
				if x.Name.Name == "init" && x.Recv == nil {
					out = append(out, fmt.Sprintf("%s: func init runs by being imported; call it", f.path))
				}
			case *ast.SelectorExpr:
				from, ok := x.X.(*ast.Ident)
				if !ok || main {
					break
				}
				call := from.Name + "." + x.Sel.Name
				if call == "os.Exit" || strings.HasPrefix(call, "log.Fatal") || strings.HasPrefix(call, "log.Panic") {
					out = append(out, fmt.Sprintf("%s: %s outside main; return the error", f.path, call))
				}
			}
			return true
		})
	}
	return out
}

// checkSourcesTested wants each source held to the spec by the test they share.
func checkSourcesTested(t *tree) []string {
	tested := map[string]bool{}
	for _, f := range t.code {
		rest, ok := strings.CutPrefix(f.dir, "exporter/source/")
		if !ok {
			continue
		}
		source, _, _ := strings.Cut(rest, "/")
		if source == "all" || source == "sourcetest" {
			continue
		}
		tested[source] = tested[source] || f.test && calls(f.File, "sourcetest", "SpecIsRead")
	}
	var out []string
	for source, ok := range tested {
		if !ok {
			out = append(out, fmt.Sprintf("exporter/source/%s: no test calls sourcetest.SpecIsRead", source))
		}
	}
	slices.Sort(out)
	return out
}

// calls says whether a function of a package is called, type arguments aside.
func calls(f *ast.File, pkg, name string) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		ast.Inspect(call.Fun, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == name {
				from, ok := s.X.(*ast.Ident)
				found = found || ok && from.Name == pkg
			}
			return true
		})
		return true
	})
	return found
}
