package resolve

import (
	"maps"
	"slices"
	"strings"

	"github.com/gpumeter/gpumeter/gen/promql"
	"github.com/gpumeter/gpumeter/gen/schema"
	"github.com/gpumeter/gpumeter/spell"
)

// panel checks one panel.
func (w *words) panel(p schema.Panel) *Panel {
	out := &Panel{Panel: p}
	bad := func(format string, args ...any) { w.faults.Add(p.Pos, out.String()+": "+format, args...) }
	for _, line := range sentencesOf(p.Brief) {
		checkBrief(p.Pos, out.String(), line, &w.faults)
	}
	if p.Open != "" {
		if out.Opens = w.byName[p.Open]; out.Opens == nil {
			bad("opens no dashboard %q%s", p.Open, spell.Suggest(p.Open, slices.Sorted(maps.Keys(w.byName))))
		}
	}
	table := p.Type == "table"
	if !table && (p.Columns != nil || p.Sort != "") {
		bad("columns and sort belong to a table")
	}
	if p.Stack && p.Type != "timeseries" {
		bad("stack belongs to a timeseries")
	}
	if width(p) > 24 {
		bad("width %d of 24", width(p))
	}
	for i, t := range p.Thresholds {
		if i > 0 && t.From <= p.Thresholds[i-1].From {
			bad("thresholds do not rise")
		}
	}
	for _, q := range p.Queries {
		out.Queries = append(out.Queries, w.query(out, q))
	}
	if !table {
		out.Unit = w.unit(p.Pos, out.String(), p.Unit, out.Queries...)
	}
	for _, c := range p.Columns {
		if !slices.ContainsFunc(out.Queries, func(q *Query) bool { return q.Labels == nil || q.Labels[c] }) {
			bad("no query has the column %s", c)
		}
	}
	if p.Sort != "" && !slices.ContainsFunc(p.Queries, func(q schema.Query) bool { return q.Name == p.Sort }) {
		bad("sorted by no query called %q", p.Sort)
	}
	return out
}

// sentencesOf are those of a text, each to be checked as a brief is.
func sentencesOf(text string) []string {
	var out []string
	for s := range strings.SplitAfterSeq(strings.Join(strings.Fields(text), " "), ". ") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// query checks one query of a panel.
func (w *words) query(p *Panel, q schema.Query) *Query {
	out := &Query{Query: q}
	out.Expr, out.Labels = w.panelExpr(q.Pos, p.String(), q.Expr)
	w.legend(q.Pos, p.String(), q.Legend, out.Labels)
	if p.Type == "table" {
		if q.Name == "" {
			w.faults.Add(q.Pos, "%s: a query of a table has a name", p)
		}
		said := q.Unit
		if said == "" {
			said = p.Panel.Unit
		}
		out.Unit = w.unit(q.Pos, p.String(), said, out)
		for label := range out.Labels {
			if !slices.ContainsFunc(w.model.Vocabulary.Labels, func(e schema.Named[string]) bool { return e.Key == label }) {
				w.faults.Add(q.Pos, "%s: the vocabulary has no head for the column %s", p, label)
			}
		}
	} else if q.Unit != "" || q.Name != "" {
		w.faults.Add(q.Pos, "%s: name and unit of a query belong to a table", p)
	}
	return out
}

// panelExpr checks an expression of a dashboard.
func (w *words) panelExpr(at schema.Pos, what, text string) (*promql.Expr, promql.Labels) {
	e, err := promql.ParsePanel(text)
	if err != nil {
		w.faults.Add(at, "%s: %v", what, err)
		return nil, nil
	}
	for _, name := range e.Settings() {
		if w.numbers.Setting(name) == nil {
			w.faults.Add(at, "%s: no number %q is typed at the top%s", what, name, spell.Suggest(name, settingNames(&w.numbers)))
			return nil, nil
		}
	}
	for _, u := range e.Uses() {
		w.model.labels[u.Metric], _ = w.labelsOf(u.Metric)
	}
	before := len(w.faults)
	out, labels := w.expression(&w.numbers, at, what, e.String())
	if len(w.faults) > before { // and nothing more is to be said of it
		return nil, nil
	}
	return out, labels
}

// legend checks that the series have the labels a text names.
func (w *words) legend(at schema.Pos, what, text string, has promql.Labels) {
	for _, m := range legendText.FindAllStringSubmatch(text, -1) {
		if has != nil && !has[m[1]] {
			w.faults.Add(at, "%s: the expression has no label %s%s", what, m[1], spell.Suggest(m[1], has.Sorted()))
		}
	}
}

// unit finds how numbers are shown: as is said, which must fit what the metrics say, or as they say.
func (w *words) unit(at schema.Pos, what, said string, queries ...*Query) *Unit {
	chosen := w.units[said]
	if said != "" && chosen == nil {
		w.faults.Add(at, "%s: no unit %q%s", what, said, spell.Suggest(said, w.named))
		return nil
	}
	for _, q := range queries {
		if q.Expr == nil || q.Labels == nil {
			return chosen
		}
		unit, ok := q.Expr.Unit(w.unitOf)
		if !ok {
			continue
		}
		found := w.shown(unit)
		switch {
		case found == nil && chosen == nil:
			w.faults.Add(at, "%s: the vocabulary does not say how %q is shown", what, unit)
			return nil
		case chosen == nil:
			chosen = found
		case found != nil && found != chosen && !slices.Contains(chosen.Of, unit):
			w.faults.Add(at, "%s: is shown as %s, and its numbers are in %q", what, chosen.Name, unit)
			return chosen
		}
	}
	if chosen == nil {
		w.faults.Add(at, "%s: wants a unit: the expression does not tell it", what)
	}
	return chosen
}

// unitOf is the unit of a metric or of a recording rule.
func (w *words) unitOf(name string) (string, bool) {
	if rec := w.records[name]; rec != nil && rec.Expr != nil {
		return rec.Expr.Unit(w.unitOf)
	}
	if m := w.prom[name]; m != nil {
		return m.Metric.Unit, true
	}
	return "", false
}

// shown is how a unit of a metric is shown; counted things are all shown alike.
func (w *words) shown(unit string) *Unit {
	for _, name := range w.named {
		u := w.units[name]
		counted := strings.HasPrefix(unit, "{") && slices.Contains(u.Of, "{}"+unit[strings.IndexByte(unit, '}')+1:])
		if slices.Contains(u.Of, unit) || counted {
			return u
		}
	}
	return nil
}

// Size is how many of 24 columns the panel takes, and how many lines.
func (p *Panel) Size() (w, h uint32) {
	h = p.Height
	if h == 0 {
		h = 8
		if p.Type == "stat" || p.Type == "gauge" {
			h = 4
		}
	}
	return width(p.Panel), h
}

func width(p schema.Panel) uint32 {
	switch {
	case p.Width > 0:
		return p.Width
	case p.Type == "stat" || p.Type == "gauge":
		return 4
	case p.Type == "table" || p.Type == "heatmap" || p.Type == "statetimeline":
		return 24
	}
	return 12
}
