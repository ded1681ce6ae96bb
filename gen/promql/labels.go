package promql

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Labels are those that the series of an expression have.
type Labels map[string]bool

// Has says whether all of them are there.
func (l Labels) Has(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !l[name] })
}

// Sorted lists them.
func (l Labels) Sorted() []string { return slices.Sorted(maps.Keys(l)) }

// Known tells the labels of a metric's series, those of the target among them; false when there is no
// such metric.
type Known func(metric string) ([]string, bool)

// Labels finds the labels an expression's series can have, and what it says of labels that are not there.
func (e *Expr) Labels(known Known) (Labels, []error) {
	f := finder{known: known}
	return f.of(e.node), f.faults
}

type finder struct {
	known  Known
	faults []error
}

func (f *finder) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Errorf(format, args...))
}

func (f *finder) of(n parser.Expr) Labels {
	switch n := n.(type) {
	case *parser.VectorSelector:
		return f.selector(n)
	case *parser.MatrixSelector:
		return f.of(n.VectorSelector)
	case *parser.ParenExpr:
		return f.of(n.Expr)
	case *parser.StepInvariantExpr:
		return f.of(n.Expr)
	case *parser.SubqueryExpr:
		return f.of(n.Expr)
	case *parser.UnaryExpr:
		return f.of(n.Expr)
	case *parser.AggregateExpr:
		return f.aggregate(n)
	case *parser.BinaryExpr:
		return f.binary(n)
	case *parser.Call:
		return f.call(n)
	}
	return Labels{}
}

func (f *finder) selector(n *parser.VectorSelector) Labels {
	if _, is := setting(n); is {
		return Labels{}
	}
	names, ok := f.known(n.Name)
	if !ok {
		f.fault("no metric or recording rule %s", n.Name)
		return nil
	}
	out := Labels{}
	for _, name := range names {
		out[name] = true
	}
	for _, m := range n.LabelMatchers {
		if m.Name != model.MetricNameLabel && !out[m.Name] {
			f.fault("%s has no label %s", n.Name, m.Name)
		}
	}
	return out
}

// need wants labels of what is not unknown altogether.
func (f *finder) need(of Labels, names []string, what string) {
	for _, name := range names {
		if of != nil && !of[name] {
			f.fault("%s %s: no series there has that label", what, name)
		}
	}
}

func (f *finder) aggregate(n *parser.AggregateExpr) Labels {
	inner := f.of(n.Expr)
	if n.Op == parser.TOPK || n.Op == parser.BOTTOMK || n.Op == parser.LIMITK {
		f.need(inner, n.Grouping, n.Op.String()+" by")
		return inner
	}
	if n.Without {
		f.need(inner, n.Grouping, "without")
		out := maps.Clone(inner)
		for _, name := range n.Grouping {
			delete(out, name)
		}
		return out
	}
	f.need(inner, n.Grouping, "by")
	out := Labels{}
	for _, name := range n.Grouping {
		out[name] = true
	}
	if n.Op == parser.COUNT_VALUES {
		if s, ok := n.Param.(*parser.StringLiteral); ok {
			out[s.Val] = true
		}
	}
	return out
}

func (f *finder) binary(n *parser.BinaryExpr) Labels {
	left, right := f.of(n.LHS), f.of(n.RHS)
	m := n.VectorMatching
	_, literalRight := setting(n.RHS)
	_, literalLeft := setting(n.LHS)
	switch {
	case n.RHS.Type() == parser.ValueTypeScalar || literalRight:
		return left
	case n.LHS.Type() == parser.ValueTypeScalar || literalLeft:
		return right
	}
	if m.On {
		f.need(left, m.MatchingLabels, "on")
		f.need(right, m.MatchingLabels, "on")
	}
	switch {
	case n.Op == parser.LAND || n.Op == parser.LUNLESS:
		return left
	case n.Op == parser.LOR:
		out := maps.Clone(left)
		if out == nil {
			return right
		}
		maps.Copy(out, right)
		return out
	}
	many, one := left, right
	if m.Card == parser.CardOneToMany {
		many, one = right, left
	}
	if m.Card == parser.CardManyToOne || m.Card == parser.CardOneToMany {
		f.need(one, m.Include, "group")
		out := maps.Clone(many)
		for _, name := range m.Include {
			out[name] = true
		}
		return out
	}
	out := maps.Clone(left)
	if m.On {
		maps.DeleteFunc(out, func(name string, _ bool) bool { return !slices.Contains(m.MatchingLabels, name) })
	} else {
		maps.DeleteFunc(out, func(name string, _ bool) bool { return slices.Contains(m.MatchingLabels, name) })
	}
	return out
}

func (f *finder) call(n *parser.Call) Labels {
	out := Labels{}
	for _, arg := range n.Args {
		if t := arg.Type(); t == parser.ValueTypeVector || t == parser.ValueTypeMatrix {
			inner := f.of(arg)
			if inner == nil {
				return nil
			}
			maps.Copy(out, inner)
		}
	}
	switch n.Func.Name {
	case "histogram_quantile":
		f.need(out, []string{"le"}, "histogram_quantile by")
		delete(out, "le")
	case "label_replace", "label_join":
		if s, ok := n.Args[1].(*parser.StringLiteral); ok {
			out[s.Val] = true
		}
	case "vector", "scalar", "time":
		return Labels{}
	}
	return out
}

// Sum says which labels of a metric a sum leaves out.
type Sum struct {
	Metric string
	Labels []string
}

// Sums are the sums of an expression over the series of a metric, but for labels of which one value is
// selected.
func (e *Expr) Sums(known Known) (out []Sum) {
	parser.Inspect(e.node, func(n parser.Node, _ []parser.Node) error {
		a, ok := n.(*parser.AggregateExpr)
		if !ok || a.Op != parser.SUM {
			return nil
		}
		inner := Expr{a.Expr}
		kept, _ := (&Expr{a}).Labels(known)
		parser.Inspect(inner.node, func(n parser.Node, _ []parser.Node) error {
			s, ok := n.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			names, there := known(s.Name)
			if !there {
				return nil
			}
			sum := Sum{Metric: s.Name}
			for _, name := range names {
				one := slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == name && m.Type == labels.MatchEqual })
				if !kept[name] && !one {
					sum.Labels = append(sum.Labels, name)
				}
			}
			out = append(out, sum)
			return nil
		})
		return nil
	})
	return out
}
