package resolve

import (
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/gpumeter/gpumeter/gen/promql"
	"github.com/gpumeter/gpumeter/gen/schema"
	"github.com/gpumeter/gpumeter/spell"
)

// Dashboard is one dashboard.
type Dashboard struct {
	schema.Dashboard
	Variables   []*Variable // the wider first
	Annotations []*Marker
	Rows        []*Row
}

// Variable is a choice at the top of a dashboard.
type Variable struct{ schema.Variable }

// Marker is what is marked on the time axis.
type Marker struct {
	schema.Marker
	Expr *promql.Expr
}

// Row is a row of panels.
type Row struct {
	schema.Row
	ID     uint32
	Panels []*Panel
}

// Panel is one picture.
type Panel struct {
	schema.Panel
	ID      uint32 // stays when others come and go
	Unit    *Unit  // nil: each query has its own
	Opens   *Dashboard
	Queries []*Query
}

// Query is one of a panel.
type Query struct {
	schema.Query
	Expr   *promql.Expr
	Labels promql.Labels // of its series
	Unit   *Unit         // of a table's column; nil: the panel's
}

// Unit is how numbers are shown.
type Unit struct {
	schema.Unit
	Name string
}

var (
	uidForm    = regexp.MustCompile(`^[a-z][a-z0-9-]{7,39}$`) // what Grafana takes
	legendText = regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)
)

// dashboards checks all of them against the vocabulary, the metrics and the recording rules.
func (r *resolver) dashboards(v schema.Vocabulary, all []schema.Dashboard) {
	w := words{resolver: r, variables: map[string]*Variable{}, markers: map[string]*Marker{}, units: map[string]*Unit{}, byName: map[string]*Dashboard{}}
	r.model.Vocabulary, r.model.labels = v, map[string][]string{}
	w.learn(v)
	uids := map[string]schema.Pos{}
	for _, d := range all {
		out := &Dashboard{Dashboard: d}
		if at, twice := uids[d.UID]; twice {
			r.faults.Add(d.Pos, "dashboard %s: uid %s is there twice, first at %s", d.Dashboard, d.UID, at)
		}
		uids[d.UID] = d.Pos
		if !uidForm.MatchString(d.UID) {
			r.faults.Add(d.Pos, "dashboard %s: uid %q is not 8 to 40 lower-case letters, digits and dashes", d.Dashboard, d.UID)
		}
		w.byName[d.Dashboard] = out
		r.model.Dashboards = append(r.model.Dashboards, out)
	}
	for _, d := range r.model.Dashboards {
		w.dashboard(d)
	}
}

// words are what dashboards may say.
type words struct {
	*resolver
	variables map[string]*Variable
	order     []*Variable
	markers   map[string]*Marker
	units     map[string]*Unit
	named     []string // units, in their order
	byName    map[string]*Dashboard
	numbers   RuleFile // those that are typed at the top of the dashboard, as the settings of its expressions
}

// learn checks the vocabulary.
func (w *words) learn(v schema.Vocabulary) {
	for _, x := range v.Variables {
		checkBrief(x.Pos, "variable "+x.Name, x.Brief, &w.faults)
		if w.variables[x.Name] != nil {
			w.faults.Add(x.Pos, "variable %s is there twice", x.Name)
		}
		w.choice(x)
		out := &Variable{x}
		w.variables[x.Name], w.order = out, append(w.order, out)
	}
	for _, u := range v.Units {
		w.units[u.Key] = &Unit{Unit: u.Value, Name: u.Key}
		w.named = append(w.named, u.Key)
	}
	for _, m := range v.Annotations {
		checkBrief(m.Pos, "annotation "+m.Name, m.Brief, &w.faults)
		out := &Marker{Marker: m}
		e, has := w.panelExpr(m.Pos, "annotation "+m.Name, m.Expr)
		out.Expr = e
		w.legend(m.Pos, "annotation "+m.Name, m.Text, has)
		w.markers[m.Name] = out
	}
}

// choice checks what a variable lets choose.
func (w *words) choice(x schema.Variable) {
	has, ok := w.labelsOf(x.From)
	_, err := strconv.ParseFloat(x.Default, 64)
	switch {
	case x.Typed && x.From != "":
		w.faults.Add(x.Pos, "variable %s: is typed, and needs no series to choose from", x.Name)
	case x.Typed && x.Label == "" && err != nil:
		w.faults.Add(x.Pos, "variable %s: selects by no label, and its default %q is no number", x.Name, x.Default)
	case x.Typed:
	case x.Default != "":
		w.faults.Add(x.Pos, "variable %s: only what is typed has a default", x.Name)
	case !ok:
		w.faults.Add(x.Pos, "variable %s: no metric or recording rule %s", x.Name, x.From)
	case !slices.Contains(has, x.Label):
		w.faults.Add(x.Pos, "variable %s: %s has no label %s%s", x.Name, x.From, x.Label, spell.Suggest(x.Label, has))
	default:
		w.model.labels[x.From] = has
	}
}

// dashboard checks one.
func (w *words) dashboard(d *Dashboard) {
	what := "dashboard " + d.Dashboard.Dashboard
	checkBrief(d.Pos, what, d.Brief, &w.faults)
	for _, name := range d.Dashboard.Variables {
		if v := w.variables[name]; v != nil {
			d.Variables = append(d.Variables, v)
		} else {
			w.faults.Add(d.Pos, "%s: no variable %q%s", what, name, spell.Suggest(name, slices.Sorted(maps.Keys(w.variables))))
		}
	}
	w.numbers = RuleFile{}
	for _, v := range d.Variables {
		if v.Label == "" {
			w.numbers.Settings = append(w.numbers.Settings, &Setting{Name: v.Name})
		}
	}
	slices.SortStableFunc(d.Variables, func(a, b *Variable) int { return slices.Index(w.order, a) - slices.Index(w.order, b) })
	for _, name := range d.Dashboard.Annotations {
		if m := w.markers[name]; m != nil {
			d.Annotations = append(d.Annotations, m)
		} else {
			w.faults.Add(d.Pos, "%s: no annotation %q%s", what, name, spell.Suggest(name, slices.Sorted(maps.Keys(w.markers))))
		}
	}
	if d.Since != "" && !isDuration(d.Since) {
		w.faults.Add(d.Pos, "%s: since %q is no time such as 6h", what, d.Since)
	}
	ids := map[uint32]schema.Pos{}
	claim := func(at schema.Pos, text string) uint32 {
		h := fnv.New32a()
		h.Write([]byte(text))
		id := h.Sum32()%1_000_000 + 1
		if other, taken := ids[id]; taken {
			w.faults.Add(at, "%s: called as at %s; another title gives it a number of its own", what, other)
		}
		ids[id] = at
		return id
	}
	for _, row := range d.Dashboard.Rows {
		out := &Row{Row: row, ID: claim(row.Pos, row.Title)}
		for _, p := range row.Panels {
			panel := w.panel(p)
			panel.ID = claim(p.Pos, row.Title+"\n"+p.Title)
			out.Panels = append(out.Panels, panel)
		}
		d.Rows = append(d.Rows, out)
	}
}

// Matchers select what is chosen at the top of a dashboard, as far as a metric has the labels. Has tells
// those of a metric.
func (d *Dashboard) Matchers(has func(metric string) []string) func(metric string) []*labels.Matcher {
	return func(metric string) []*labels.Matcher {
		known := has(metric)
		var out []*labels.Matcher
		for _, v := range d.Variables {
			if slices.Contains(known, v.Label) {
				out = append(out, labels.MustNewMatcher(labels.MatchRegexp, v.Label, "$"+v.Name))
			}
		}
		return out
	}
}

// String names a panel in messages.
func (p *Panel) String() string { return fmt.Sprintf("panel %q", p.Title) }
