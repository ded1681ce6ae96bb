// Package test holds the rules of the house: what no single package can check of itself.
// It reads and executes the product, and imports nothing of it.
package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/gpumeter/gpumeter"

// rule is one rule of the house: a pure function from the repository to what breaks it.
type rule struct {
	name  string
	check func(*tree) []string
}

// rules are all that hold over files. Each has at least one offence in offences_test.go.
var rules = []rule{
	{"imports", checkImports},
	{"package docs", checkDocs},
	{"names", checkNames},
	{"sizes", checkSizes},
	{"generated", checkGenerated},
	{"generated marked", checkMarked},
	{"testing", checkTesting},
	{"exits", checkExits},
	{"global state", checkState},
	{"sources tested", checkSourcesTested},
	{"sources listed", checkSourcesListed},
	{"scales", checkScales},
	{"labels", checkLabels},
	{"machine paths", checkMachinePaths},
	{"makefile", checkMakefile},
	{"commands", checkCommands},
	{"failures heard", checkFailuresHeard},
	{"changelog", checkChangelog},
	{"locks", checkLocks},
}

func TestHouse(t *testing.T) {
	repo := load(t, "..")
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, offence := range r.check(repo) {
				t.Error(offence)
			}
		})
	}
}

// tree is a repository held in memory, so that a rule can be shown one that breaks it.
type tree struct {
	files map[string]string // by path from the root
	code  []goFile
}

// goFile is one parsed Go file.
type goFile struct {
	path, dir string
	test      bool // named _test.go
	generated bool
	*ast.File
}

// paths are all files in a fixed order.
func (t *tree) paths() []string { return slices.Sorted(maps.Keys(t.files)) }

// product are the Go files that are neither tests nor below test/.
func (t *tree) product() []goFile {
	var out []goFile
	for _, f := range t.code {
		if !f.test && !within(f.dir, "test") {
			out = append(out, f)
		}
	}
	return out
}

// load reads the repository as git would see it after adding everything.
func load(t *testing.T, root string) *tree {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		if e.IsDir() {
			if rel == ".git" || rel == "bin" || rel == "dist" {
				return fs.SkipDir
			}
			return nil
		}
		// What .gitignore names, links, which lead to files read under their own name, and the file
		// that a linked worktree has in place of the folder .git.
		if ext := path.Ext(rel); ext == ".test" || ext == ".out" || rel == ".git" || !e.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(file)
		files[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return newTree(t, files)
}

// newTree parses the Go files among files.
func newTree(t *testing.T, files map[string]string) *tree {
	t.Helper()
	out := &tree{files: files}
	for _, name := range out.paths() {
		if path.Ext(name) != ".go" || slices.Contains(strings.Split(name, "/"), "testdata") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, files[name], parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		out.code = append(out.code, goFile{
			path: name, dir: path.Dir(name), File: f,
			test:      strings.HasSuffix(name, "_test.go"),
			generated: strings.HasPrefix(path.Base(name), "zz_"),
		})
	}
	return out
}

// within says whether a slash path is dir or below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, dir+"/")
}

// rooms maps folders to what holds for them and all below; the longest that covers a folder counts.
type rooms map[string][]string

func (r rooms) of(dir string) ([]string, bool) {
	for d := dir; ; d = path.Dir(d) {
		if x, ok := r[d]; ok && (d != "." || dir == ".") {
			return x, true
		}
		if d == "." {
			return nil, false
		}
	}
}
