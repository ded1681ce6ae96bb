package promql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// Held is true where the expression is true now and was at every step of the window before. Window is
// a duration, and points how many steps it has, both as they are to be printed.
func (e *Expr) Held(window, step, points string) *Expr {
	inner := &parser.ParenExpr{Expr: e.node}
	past := &subquery{SubqueryExpr: parser.SubqueryExpr{Expr: inner}, window: window, step: step}
	count := &parser.Call{Func: parser.Functions["count_over_time"], Args: parser.Expressions{past}}
	always := &parser.BinaryExpr{
		Op: parser.GTE, LHS: count, RHS: &literal{text: points}, VectorMatching: &parser.VectorMatching{Card: parser.CardOneToOne},
	}
	return &Expr{&parser.BinaryExpr{
		Op: parser.LAND, LHS: inner, RHS: &parser.ParenExpr{Expr: always}, VectorMatching: &parser.VectorMatching{Card: parser.CardManyToMany},
	}}
}

// Compared splits a comparison of series with a number; not ok where it is none.
func (e *Expr) Compared() (series *Expr, sign string, limit *Expr, ok bool) {
	b, is := e.node.(*parser.BinaryExpr)
	if !is || b.ReturnBool || !slices.Contains([]parser.ItemType{parser.LSS, parser.LTE, parser.GTR, parser.GTE}, b.Op) {
		return nil, "", nil, false
	}
	if _, isSetting := setting(b.RHS); !isSetting && b.RHS.Type() != parser.ValueTypeScalar {
		return nil, "", nil, false
	}
	return &Expr{b.LHS}, b.Op.String(), &Expr{b.RHS}, true
}

// HeldOver is true where a recorded series passes the limit, did not fail to in the window, and one of
// those that agree with it in some labels passed it at every step: successors of one another hold the
// time together, and none that did well meanwhile is said to have held it.
func HeldOver(record, sign string, limit *Expr, over []string, window, step, points string) (*Expr, error) {
	worst, best, well := "max", "min", map[string]string{">": "<=", ">=": "<", "<": ">=", "<=": ">"}[sign]
	if strings.HasPrefix(sign, "<") {
		worst, best = best, worst
	}
	e, err := Parse(fmt.Sprintf(
		"%[1]s %[2]s config:limit unless %[3]s_over_time(%[1]s[1m:]) %[4]s config:limit and on (%[6]s) (count_over_time((%[5]s by (%[6]s) (%[1]s) %[2]s config:limit)[1m:]) >= config:points)",
		record, sign, best, well, worst, strings.Join(over, ", ")))
	if err != nil {
		return nil, err
	}
	e.node = replace(e.node, func(n parser.Expr) parser.Expr {
		switch name, _ := setting(n); name {
		case "limit":
			return limit.node
		case "points":
			return &literal{text: points}
		}
		return nil
	})
	e.node = replace(e.node, func(n parser.Expr) parser.Expr {
		if n, ok := n.(*parser.SubqueryExpr); ok {
			return &subquery{SubqueryExpr: parser.SubqueryExpr{Expr: n.Expr}, window: window, step: step}
		}
		return nil
	})
	return e, nil
}

// And is true where both are, as far as those labels tell.
func (e *Expr) And(on []string, other *Expr) *Expr {
	return &Expr{&parser.BinaryExpr{
		Op: parser.LAND, LHS: &parser.ParenExpr{Expr: e.node}, RHS: &parser.ParenExpr{Expr: other.node},
		VectorMatching: &parser.VectorMatching{Card: parser.CardManyToMany, On: true, MatchingLabels: on},
	}}
}

// subquery is printed with a window that may be the place of one.
type subquery struct {
	parser.SubqueryExpr
	window, step string
}

func (s *subquery) String() string {
	return fmt.Sprintf("%s[%s:%s]", s.Expr, s.window, s.step)
}

// Pretty implements parser.Expr.
func (s *subquery) Pretty(level int) string {
	return fmt.Sprintf("%s[%s:%s]", s.Expr.Pretty(level), s.window, s.step)
}

// Joined gives the series of a recording rule the labels that the owner's info has, where there is one.
// Of several, which a series that has ended leaves behind for a while, it is the newest.
func Joined(record, owner string, on, labels []string) (*Expr, error) {
	return Parse(fmt.Sprintf("%[1]s * on (%[2]s) group_left (%[3]s) (topk by (%[2]s) (1, timestamp(%[4]s)) > bool 0) or on (%[2]s) %[1]s",
		record, strings.Join(on, ", "), strings.Join(labels, ", "), owner))
}

// Victims gives the series of a recording rule the labels of each of those for whom the expression
// victims is above 0; where there is none they are as in e.
func (e *Expr) Victims(record string, victims *Expr, on, labels []string) (*Expr, error) {
	device := strings.Join(on, ", ")
	return Parse(fmt.Sprintf("%[1]s * on (%[2]s) group_right () group by (%[2]s, %[3]s) (%[4]s > 0) or on (%[2]s) (%[5]s)",
		record, device, strings.Join(labels, ", "), victims, e))
}
