package promql

import (
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// Unit finds the unit of an expression's numbers from those of its metrics; false where it can not be told.
func (e *Expr) Unit(of func(metric string) (unit string, ok bool)) (string, bool) {
	return unitOf(e.node, of)
}

func unitOf(n parser.Expr, of func(string) (string, bool)) (string, bool) {
	switch n := n.(type) {
	case *parser.VectorSelector:
		return of(n.Name)
	case *parser.MatrixSelector:
		return unitOf(n.VectorSelector, of)
	case *parser.ParenExpr:
		return unitOf(n.Expr, of)
	case *parser.StepInvariantExpr:
		return unitOf(n.Expr, of)
	case *parser.SubqueryExpr:
		return unitOf(n.Expr, of)
	case *parser.UnaryExpr:
		return unitOf(n.Expr, of)
	case *parser.AggregateExpr:
		switch n.Op {
		case parser.COUNT, parser.GROUP, parser.COUNT_VALUES, parser.STDVAR:
			return "", false
		}
		return unitOf(n.Expr, of)
	case *parser.BinaryExpr:
		if n.Op.IsComparisonOperator() && !n.ReturnBool || n.Op.IsSetOperator() {
			return unitOf(n.LHS, of)
		}
		if n.Op == parser.ADD || n.Op == parser.SUB {
			left, ok := unitOf(n.LHS, of)
			right, also := unitOf(n.RHS, of)
			return left, ok && also && left == right
		}
		if left, ok := unitOf(n.LHS, of); ok && n.Op == parser.DIV {
			right, also := unitOf(n.RHS, of)
			return "1", also && left == right
		}
	case *parser.Call:
		return unitOfCall(n, of)
	}
	return "", false
}

// perSecond is what a unit becomes each second.
var perSecond = map[string]string{"s": "1", "J": "W"}

func unitOfCall(n *parser.Call, of func(string) (string, bool)) (string, bool) {
	if len(n.Args) == 0 {
		return "", false
	}
	name := n.Func.Name
	switch {
	case name == "rate" || name == "irate" || name == "deriv":
		unit, ok := unitOf(n.Args[0], of)
		if per, is := perSecond[unit]; is {
			return per, ok
		}
		return unit + "/s", ok
	case name == "histogram_quantile":
		uses := (&Expr{n.Args[1]}).Uses() // whatever is counted of its buckets
		if len(uses) != 1 {
			return "", false
		}
		return of(uses[0].Metric)
	case name == "increase" || name == "delta" || strings.HasPrefix(name, "sort") || strings.HasPrefix(name, "label_") || strings.HasPrefix(name, "clamp"):
		return unitOf(n.Args[0], of)
	case strings.HasSuffix(name, "_over_time") && !strings.HasPrefix(name, "count") && !strings.HasPrefix(name, "sum") && !strings.Contains(name, "absent") && !strings.Contains(name, "present"):
		return unitOf(n.Args[0], of)
	}
	return "", false
}
