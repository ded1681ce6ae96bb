package test

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// blockingPackages have functions that wait for a disk, a peer or another process. harmless are those of their
// functions that do not.
var (
	blockingPackages = []string{"os", "os/exec", "net", "net/http", "io", "path/filepath", "syscall", "golang.org/x/sys/unix"}
	harmless         = []string{
		"os.Getenv", "os.LookupEnv", "os.Getpid", "os.Getuid", "os.SameFile", "os.NewSyscallError", "os.IsNotExist", "os.IsExist",
		"http.StatusText", "http.NewRequest", "http.NewRequestWithContext", "http.Error", "http.NewServeMux", "http.HandlerFunc",
		"net.JoinHostPort", "net.SplitHostPort", "net.ParseIP", "io.LimitReader", "io.MultiWriter", "io.NopCloser",
		"filepath.Join", "filepath.Base", "filepath.Dir", "filepath.Clean", "filepath.FromSlash", "filepath.ToSlash", "filepath.Ext",
	}
	// driverFields are the fields of exporter/source/nvml through which the driver is called.
	driverFields = []string{"lib", "dev"}
)

// checkLocks wants no lock held over a file, a socket, another process, a channel or a driver: what hangs there
// would hang whoever wants the lock. It looks at what is written between Lock and Unlock in one function, and
// into methods of the same package that run a function under a lock.
func checkLocks(t *tree) []string {
	under := map[string]map[string]bool{} // by folder: methods that run their argument under a lock
	for _, f := range t.product() {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && runsUnderLock(fn) {
				if under[f.dir] == nil {
					under[f.dir] = map[string]bool{}
				}
				under[f.dir][fn.Name.Name] = true
			}
		}
	}
	var out []string
	for _, f := range t.product() {
		if !within(f.dir, "exporter") {
			continue
		}
		c := lockCheck{file: f, imports: imported(f.File), driver: f.dir == "exporter/source/nvml"}
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.BlockStmt:
				c.block(x.List)
			case *ast.CallExpr:
				name, ok := x.Fun.(*ast.SelectorExpr)
				if !ok || !under[f.dir][name.Sel.Name] {
					break
				}
				for _, arg := range x.Args {
					if fn, ok := arg.(*ast.FuncLit); ok {
						c.held(name.Sel.Name, fn.Body)
					}
				}
			}
			return true
		})
		out = append(out, c.out...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// runsUnderLock reports whether a method locks, unlocks at its end and calls one of its parameters.
func runsUnderLock(fn *ast.FuncDecl) bool {
	if fn.Recv == nil || fn.Body == nil || len(fn.Body.List) < 3 || lockOf(fn.Body.List[0], "Lock") == "" {
		return false
	}
	if d, ok := fn.Body.List[1].(*ast.DeferStmt); !ok || lockOf(&ast.ExprStmt{X: d.Call}, "Unlock") == "" {
		return false
	}
	params := map[string]bool{}
	for _, p := range fn.Type.Params.List {
		for _, name := range p.Names {
			params[name.Name] = true
		}
	}
	called := false
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if name, ok := call.Fun.(*ast.Ident); ok {
				called = called || params[name.Name]
			}
		}
		return true
	})
	return called
}

// imported returns the path of each import by the name that the file gives it.
func imported(f *ast.File) map[string]string {
	out := map[string]string{}
	for _, imp := range f.Imports {
		p := strings.Trim(imp.Path.Value, "\"`")
		name := path.Base(p)
		if imp.Name != nil {
			name = imp.Name.Name
		}
		out[name] = p
	}
	return out
}

// lockCheck looks for what may hang under a lock in one file.
type lockCheck struct {
	file    goFile
	imports map[string]string
	driver  bool
	out     []string
}

// block looks at the statements between each lock and its unlock. A lock that is given back by a defer, or not in
// the same block, is held to the end of the block.
func (c *lockCheck) block(list []ast.Stmt) {
	for i, s := range list {
		lock := lockOf(s, "Lock")
		if lock == "" {
			continue
		}
		for _, next := range list[i+1:] {
			if lockOf(next, "Unlock") == lock {
				break
			}
			c.held(lock, next)
		}
	}
}

// lockOf returns the text of the mutex that a statement locks or unlocks, also for reading; empty: it does not.
func lockOf(s ast.Stmt, method string) string {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return ""
	}
	call, ok := e.X.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return ""
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != method && f.Sel.Name != "R"+method {
		return ""
	}
	return text(f.X)
}

// text writes a chain of names as it stands in the source.
func text(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return text(x.X) + "." + x.Sel.Name
	}
	return "?"
}

// held looks at what is done under a lock. What another goroutine or a later call does is not.
func (c *lockCheck) held(lock string, n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncLit, *ast.GoStmt:
			return false
		case *ast.SelectStmt:
			for _, s := range x.Body.List {
				if clause := s.(*ast.CommClause); clause.Comm == nil { // a default: nothing is waited for
					for _, s := range x.Body.List {
						for _, then := range s.(*ast.CommClause).Body {
							c.held(lock, then)
						}
					}
					return false
				}
			}
			c.offence(lock, "waits in a select")
			return false
		case *ast.SendStmt:
			c.offence(lock, "sends to a channel")
		case *ast.UnaryExpr:
			if x.Op == token.ARROW {
				c.offence(lock, "receives from a channel")
			}
		case *ast.CallExpr:
			if what := c.blocks(x); what != "" {
				c.offence(lock, "calls "+what)
			}
		}
		return true
	})
}

// blocks returns the text of a call that may hang; empty: it may not, as far as can be seen.
func (c *lockCheck) blocks(call *ast.CallExpr) string {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	name, of := text(f), f.X
	if from, ok := of.(*ast.Ident); ok {
		switch p := c.imports[from.Name]; {
		case p == "time" && f.Sel.Name == "Sleep":
			return name
		case slices.Contains(blockingPackages, p) && !slices.Contains(harmless, path.Base(p)+"."+f.Sel.Name):
			return name
		case p == module+"/exporter/safefile":
			return name
		}
	}
	at := text(of)
	field := at[strings.LastIndex(at, ".")+1:]
	switch {
	case strings.EqualFold(field, "store") && (f.Sel.Name == "Save" || f.Sel.Name == "Load"):
		return name
	case c.driver && slices.Contains(driverFields, field):
		return name
	}
	return ""
}

func (c *lockCheck) offence(lock, what string) {
	c.out = append(c.out, fmt.Sprintf("%s: %s under the lock %s; copy under the lock, and wait without it", c.file.path, what, lock))
}
