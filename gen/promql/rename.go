package promql

import "github.com/prometheus/prometheus/promql/parser"

// Rename gives a label another name wherever the expression groups, matches or selects by it.
func (e *Expr) Rename(label, name string) (*Expr, error) {
	out, err := Parse(e.String()) // a copy
	if err != nil {
		return nil, err
	}
	rename := func(names []string) {
		for i := range names {
			if names[i] == label {
				names[i] = name
			}
		}
	}
	parser.Inspect(out.node, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.AggregateExpr:
			rename(n.Grouping)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				rename(n.VectorMatching.MatchingLabels)
				rename(n.VectorMatching.Include)
			}
		case *parser.VectorSelector:
			for _, m := range n.LabelMatchers {
				if m.Name == label {
					m.Name = name
				}
			}
		}
		return nil
	})
	return out, nil
}
