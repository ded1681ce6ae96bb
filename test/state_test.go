package test

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// checkState wants package-level variables that are set once, where they are declared: two
// exporters in one process must not meet.
func checkState(t *tree) []string {
	var out []string
	declared := map[string]map[string]bool{} // by folder
	specs := map[any]bool{}                  // *ast.ValueSpec
	for _, f := range t.product() {
		if declared[f.dir] == nil {
			declared[f.dir] = map[string]bool{}
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				specs[v] = true
				for _, n := range v.Names {
					declared[f.dir][n.Name] = true
					if !setOnce(g, v, n.Name) {
						out = append(out, fmt.Sprintf("%s: var %s is made to be changed; put it in a struct", f.path, n.Name))
					}
				}
			}
		}
	}
	for _, f := range t.product() {
		ast.Inspect(f.File, func(n ast.Node) bool {
			for _, target := range assigned(n) {
				id := root(target)
				if id == nil || !declared[f.dir][id.Name] {
					continue
				}
				// The parser resolves names within a file: an unresolved one is declared in another.
				if id.Obj == nil || specs[id.Obj.Decl] {
					out = append(out, fmt.Sprintf("%s: changes the package-level var %s", f.path, id.Name))
				}
			}
			return true
		})
	}
	return out
}

// setOnce says whether a variable has its value where it is declared, and is not of a kind that
// is only good for changing.
func setOnce(g *ast.GenDecl, v *ast.ValueSpec, name string) bool {
	if name == "_" {
		return true
	}
	if len(v.Values) == 0 {
		return embeds(g.Doc) || embeds(v.Doc)
	}
	changing := false
	for _, value := range v.Values {
		ast.Inspect(value, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.FuncLit:
				return false // its own variables are its own
			case *ast.CallExpr:
				if f, ok := x.Fun.(*ast.Ident); ok && (f.Name == "make" || f.Name == "new") {
					changing = true
				}
			case *ast.SelectorExpr:
				if p, ok := x.X.(*ast.Ident); ok && (p.Name == "sync" || p.Name == "atomic") {
					changing = true
				}
			}
			return true
		})
	}
	return !changing
}

// embeds says whether a comment is a go:embed directive, which sets the variable when it is built.
func embeds(c *ast.CommentGroup) bool {
	if c == nil {
		return false
	}
	for _, line := range c.List {
		if strings.HasPrefix(line.Text, "//go:embed ") {
			return true
		}
	}
	return false
}

// assigned are the expressions a statement gives a value to, declarations aside.
func assigned(n ast.Node) []ast.Expr {
	switch x := n.(type) {
	case *ast.AssignStmt:
		if x.Tok != token.DEFINE {
			return x.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{x.X}
	case *ast.RangeStmt:
		if x.Tok == token.ASSIGN {
			return []ast.Expr{x.Key, x.Value}
		}
	}
	return nil
}

// root is the variable at the left of x.y[i], or nil.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}
