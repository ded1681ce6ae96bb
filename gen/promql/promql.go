// Package promql reads, checks and rewrites PromQL through Prometheus' own parser.
package promql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Expr is a parsed expression.
type Expr struct{ node parser.Expr }

// Parse reads an expression.
func Parse(text string) (*Expr, error) {
	node, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return nil, err
	}
	return &Expr{node}, nil
}

// String prints it on one line.
func (e *Expr) String() string { return e.node.String() }

// Pretty prints it over several lines where it is long.
func (e *Expr) Pretty() string { return e.node.Pretty(0) }

// Use is one selector of an expression.
type Use struct {
	Metric   string
	Matched  []string // labels it selects by
	Range    bool     // it selects a range
	Function string   // that is called on it; empty when none is
}

// settingPrefix begins the name of a setting where an expression has a number or a label's value.
const settingPrefix = "config:"

// setting is the name of the setting a selector stands for, if it does.
func setting(n parser.Node) (string, bool) {
	s, ok := n.(*parser.VectorSelector)
	if !ok {
		return "", false
	}
	return strings.CutPrefix(s.Name, settingPrefix)
}

// Uses are the selectors, in their order.
func (e *Expr) Uses() []Use {
	var out []Use
	parser.Inspect(e.node, func(n parser.Node, path []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if _, isSetting := setting(n); !ok || isSetting {
			return nil
		}
		u := Use{Metric: s.Name}
		for _, m := range s.LabelMatchers {
			if m.Name != model.MetricNameLabel {
				u.Matched = append(u.Matched, m.Name)
			}
		}
		for _, up := range slices.Backward(path) {
			switch up := up.(type) {
			case *parser.MatrixSelector:
				u.Range = true
				continue
			case *parser.ParenExpr, *parser.StepInvariantExpr:
				continue
			case *parser.Call:
				u.Function = up.Func.Name
			}
			break
		}
		out = append(out, u)
		return nil
	})
	return out
}

// Settings are the names of those an expression uses, each once.
func (e *Expr) Settings() []string {
	var out []string
	parser.Inspect(e.node, func(n parser.Node, _ []parser.Node) error {
		if name, ok := setting(n); ok {
			out = append(out, name)
		}
		if s, ok := n.(*parser.VectorSelector); ok {
			for _, m := range s.LabelMatchers {
				if name, ok := strings.CutPrefix(m.Value, settingPrefix); ok && m.Name != model.MetricNameLabel {
					out = append(out, name)
				}
			}
		}
		return nil
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// Values are what is put in for settings: a number as it is to be printed, or a text.
type Values func(name string) (text string, ok bool)

// With puts settings in, and matchers into every selector of a metric; not into those of recording rules.
func (e *Expr) With(values Values, matchers ...*labels.Matcher) (*Expr, error) {
	out, err := Parse(e.String()) // a copy
	if err != nil {
		return nil, err
	}
	var missing []string
	value := func(name string) string {
		text, ok := values(name)
		if !ok {
			missing = append(missing, name)
		}
		return text
	}
	parser.Inspect(out.node, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if _, isSetting := setting(n); !ok || isSetting {
			return nil
		}
		for _, m := range s.LabelMatchers {
			if name, ok := strings.CutPrefix(m.Value, settingPrefix); ok && m.Name != model.MetricNameLabel {
				*m = *labels.MustNewMatcher(m.Type, m.Name, value(name))
			}
		}
		if !strings.Contains(s.Name, ":") { // the series of a recording rule are of no job
			s.LabelMatchers = append(s.LabelMatchers, matchers...)
		}
		return nil
	})
	out.node = replace(out.node, func(n parser.Expr) parser.Expr {
		if name, ok := setting(n); ok {
			return &literal{text: value(name)}
		}
		return nil
	})
	if missing != nil {
		return nil, fmt.Errorf("no setting %s", strings.Join(missing, ", "))
	}
	return out, nil
}

// literal is a number that is printed as it was written, or the place of one.
type literal struct {
	parser.NumberLiteral
	text string
}

func (l *literal) String() string    { return l.text }
func (l *literal) Pretty(int) string { return l.text }

// replace puts other nodes in the place of some, depth first; nil from the function leaves one.
func replace(n parser.Expr, by func(parser.Expr) parser.Expr) parser.Expr {
	if other := by(n); other != nil {
		return other
	}
	switch n := n.(type) {
	case *parser.AggregateExpr:
		n.Expr = replace(n.Expr, by)
		if n.Param != nil {
			n.Param = replace(n.Param, by)
		}
	case *parser.BinaryExpr:
		n.LHS, n.RHS = replace(n.LHS, by), replace(n.RHS, by)
	case *parser.Call:
		for i := range n.Args {
			n.Args[i] = replace(n.Args[i], by)
		}
	case *parser.ParenExpr:
		n.Expr = replace(n.Expr, by)
	case *parser.SubqueryExpr:
		n.Expr = replace(n.Expr, by)
	case *parser.UnaryExpr:
		n.Expr = replace(n.Expr, by)
	}
	return n
}
