package promql

import (
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// intervals are what Grafana puts into a range, and durations nobody writes that stand for them while
// an expression is a tree, as they are printed.
var intervals = []struct{ word, stands string }{
	{"[$__rate_interval", "[1103d1h1m1s1ms"},
	{"[$__range", "[1103d1h1m1s2ms"},
}

// ParsePanel reads an expression of a dashboard, which may have Grafana's ranges.
func ParsePanel(text string) (*Expr, error) {
	for _, i := range intervals {
		text = strings.ReplaceAll(text, i.word, i.stands)
	}
	return Parse(text)
}

// Panel prints an expression as Grafana takes it.
func (e *Expr) Panel() string {
	text := e.String() // on one line: where it is broken would depend on how long the names of labels are
	for _, i := range intervals {
		text = strings.ReplaceAll(text, i.stands, i.word)
	}
	return text
}

// Match puts matchers into selectors, those that which says for a metric; not by a label that a selector
// selects by already.
func (e *Expr) Match(which func(metric string) []*labels.Matcher) (*Expr, error) {
	out, err := Parse(e.String()) // a copy
	if err != nil {
		return nil, err
	}
	parser.Inspect(out.node, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		selected := map[string]bool{}
		for _, m := range s.LabelMatchers {
			selected[m.Name] = true
		}
		for _, m := range which(s.Name) {
			if !selected[m.Name] {
				s.LabelMatchers = append(s.LabelMatchers, m)
			}
		}
		return nil
	})
	return out, nil
}
