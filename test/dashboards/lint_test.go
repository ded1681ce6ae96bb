// Package dashboards holds the Grafana dashboards to what Grafana's own linter asks, and to more.
package dashboards

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/dashboardv2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// board is a dashboard as far as it is looked at.
type board struct {
	UID         string                `json:"uid"`
	Title       string                `json:"title"`
	Description string                `json:"description"`
	Editable    bool                  `json:"editable"`
	Tags        []string              `json:"tags"`
	Refresh     string                `json:"refresh"`
	Time        struct{ From string } `json:"time"`
	Panels      []panel               `json:"panels"`
	Links       []struct {
		IncludeVars bool     `json:"includeVars"`
		KeepTime    bool     `json:"keepTime"`
		Tags        []string `json:"tags"`
	} `json:"links"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []struct {
			Expr string `json:"expr"`
		} `json:"list"`
	} `json:"annotations"`
}

type variable struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Label    string `json:"label"`
	Query    any    `json:"query"`
	Refresh  int    `json:"refresh"`
	AllValue string `json:"allValue"`
}

type panel struct {
	ID          int     `json:"id"`
	Type        string  `json:"type"`
	Title       string  `json:"title"`
	Description string  `json:"description"`
	Panels      []panel `json:"panels"`
	Datasource  source  `json:"datasource"`
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct {
		RefID      string `json:"refId"`
		Expr       string `json:"expr"`
		Datasource source `json:"datasource"`
	} `json:"targets"`
	FieldConfig struct {
		Defaults struct {
			Unit  string                 `json:"unit"`
			Links []struct{ URL string } `json:"links"`
		} `json:"defaults"`
		Overrides []struct {
			Properties []struct {
				ID string `json:"id"`
			} `json:"properties"`
		} `json:"overrides"`
	} `json:"fieldConfig"`
}

type source struct{ Type, UID string }

// all reads the dashboards, by file.
func all(t *testing.T) map[string]board {
	t.Helper()
	files, err := filepath.Glob("../../dashboards/*.json")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d dashboards, %v", len(files), err)
	}
	out := map[string]board{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var b board
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out[filepath.Base(file)] = b
	}
	return out
}

// pictures are the panels that are no rows, those within closed rows among them.
func (b board) pictures() []panel {
	var out []panel
	for _, p := range b.Panels {
		if p.Type != "row" {
			out = append(out, p)
		}
		out = append(out, p.Panels...)
	}
	return out
}

// lint says what is wrong with a dashboard.
func lint(b board, uids map[string]board) []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if b.Editable {
		bad("can be edited, and the next release would lose that")
	}
	if strings.HasSuffix(b.Time.From, "d") == (b.Refresh != "") { // a month is not asked for each minute
		bad("refresh %q, and shows the time since %s", b.Refresh, b.Time.From)
	}
	if b.Description == "" || !slices.Contains(b.Tags, "gpumeter") {
		bad("description %q, tags %q", b.Description, b.Tags)
	}
	if len(b.Links) != 1 || !b.Links[0].IncludeVars || !b.Links[0].KeepTime {
		bad("links %+v: want one to all others that keeps what is chosen", b.Links)
	}
	variables := lintVariables(b, bad)
	for _, a := range b.Annotations.List {
		if a.Expr != "" {
			lintExpr(a.Expr, variables, func(format string, args ...any) { bad("annotation: "+format, args...) })
		}
	}
	ids := map[int]bool{}
	for _, p := range append(b.pictures(), b.Panels...) {
		if p.Type == "row" || !ids[p.ID] {
			if p.ID == 0 || ids[p.ID] {
				bad("%s: id %d is none, or there twice", p.Title, p.ID)
			}
			ids[p.ID] = true
		}
	}
	for _, p := range b.pictures() {
		lintPanel(p, variables, uids, func(format string, args ...any) { bad(p.Title+": "+format, args...) })
	}
	return append(out, overlaps(b)...)
}

func lintVariables(b board, bad func(string, ...any)) []string {
	var names []string
	for i, v := range b.Templating.List {
		names = append(names, v.Name)
		switch {
		case v.Label == "":
			bad("variable %s: no label", v.Name)
		case i == 0 && (v.Type != "datasource" || v.Name != "datasource" || v.Query != "prometheus"):
			bad("the first variable is not the data source: %+v", v)
		case v.Type == "query" && (v.Refresh != 2 || v.AllValue != ".*"):
			bad("variable %s: refresh %d, all is %q", v.Name, v.Refresh, v.AllValue)
		}
	}
	return names
}

func lintPanel(p panel, variables []string, uids map[string]board, bad func(string, ...any)) {
	if p.Title == "" || p.Description == "" {
		bad("no title or no description")
	}
	if p.Datasource != (source{"prometheus", "${datasource}"}) || len(p.Targets) == 0 {
		bad("data source %+v, %d queries", p.Datasource, len(p.Targets))
	}
	units := p.FieldConfig.Defaults.Unit != ""
	for _, o := range p.FieldConfig.Overrides {
		for _, x := range o.Properties {
			units = units || x.ID == "unit"
		}
	}
	if !units {
		bad("no unit")
	}
	refs := map[string]bool{}
	for _, q := range p.Targets {
		if q.Datasource != p.Datasource || refs[q.RefID] || q.RefID == "" {
			bad("query %q: data source %+v", q.RefID, q.Datasource)
		}
		refs[q.RefID] = true
		lintExpr(q.Expr, variables, bad)
	}
	for _, l := range p.FieldConfig.Defaults.Links {
		lintLink(l.URL, uids, bad)
	}
}

var (
	used  = regexp.MustCompile(`\$\{?([a-z_]+)`)
	typed = regexp.MustCompile(`\$\{[a-z]+\}`) // a number
)

// lintExpr wants an expression that Prometheus takes, of series that are ours, with ranges that hold
// enough samples, and with variables that are there.
func lintExpr(expr string, variables []string, bad func(string, ...any)) {
	for _, m := range used.FindAllStringSubmatch(expr, -1) {
		if !slices.Contains(variables, m[1]) && m[1] != "__range" && m[1] != "__rate_interval" {
			bad("no variable $%s: %s", m[1], expr)
		}
	}
	e, err := parser.NewParser(parser.Options{}).ParseExpr(typed.ReplaceAllString(strings.NewReplacer("$__range", "6h", "$__rate_interval", "2m").Replace(expr), "1"))
	if err != nil {
		bad("%v: %s", err, expr)
		return
	}
	parser.Inspect(e, func(n parser.Node, path []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		job := slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == "job" })
		if recorded := strings.Contains(s.Name, ":"); job == recorded {
			bad("%s: job is selected: %v", s.Name, job)
		}
		for _, name := range variables {
			label := map[string]string{"cluster": "cluster", "node": "instance"}[name] // what all series have
			has := slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == label })
			if label != "" && !has && !strings.Contains(s.Name, ":") {
				bad("%s: is not selected by %s", s.Name, label)
			}
		}
		if len(path) > 0 {
			if call, ok := path[len(path)-1].(*parser.Call); !ok && strings.HasSuffix(s.Name, "_total") {
				if _, ranged := path[len(path)-1].(*parser.MatrixSelector); !ranged {
					bad("%s only ever rises; wants rate or increase", s.Name)
				}
			} else if ok && call.Func.Name == "rate" {
				bad("rate of an instant of %s", s.Name)
			}
		}
		return nil
	})
}

// lintLink wants a dashboard that is there, with the variables that are set in it.
func lintLink(link string, uids map[string]board, bad func(string, ...any)) {
	path, query, _ := strings.Cut(link, "?")
	to, there := uids[strings.TrimPrefix(path, "/d/")]
	if !there {
		bad("opens %s, which is not there", path)
		return
	}
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		name, sets := strings.CutPrefix(name, "var-")
		if sets && !slices.ContainsFunc(to.Templating.List, func(v variable) bool { return v.Name == name }) {
			bad("opens %s with the variable %s, which it has not", path, name)
		}
		if _, err := url.PathUnescape(part); err != nil {
			bad("link %s: %v", link, err)
		}
	}
}

// overlaps are panels that lie on one another or beyond the grid's edge.
func overlaps(b board) []string {
	var out []string
	taken := map[[2]int]string{}
	for _, p := range append(b.pictures(), b.Panels...) {
		g := p.GridPos
		if g.W == 0 || g.H == 0 || g.X+g.W > 24 {
			out = append(out, fmt.Sprintf("%s: lies at %+v", p.Title, g))
		}
		if p.Type != "row" && taken[[2]int{g.X, g.Y}] == p.Title {
			continue // it was among the pictures
		}
		for x := range g.W {
			for y := range g.H {
				at := [2]int{g.X + x, g.Y + y}
				if other := taken[at]; other != "" && other != p.Title {
					out = append(out, fmt.Sprintf("%s lies on %s", p.Title, other))
					return out
				}
				taken[at] = p.Title
			}
		}
	}
	return out
}

func TestLint(t *testing.T) {
	boards := all(t)
	uids := map[string]board{}
	for file, b := range boards {
		if other, twice := uids[b.UID]; twice {
			t.Errorf("%s: uid %s is that of %s", file, b.UID, other.Title)
		}
		uids[b.UID] = b
	}
	for file, b := range boards {
		for _, fault := range lint(b, uids) {
			t.Errorf("%s: %s", file, fault)
		}
	}
}

// Grafana's own types take each file, with nothing missing and nothing more; and it is no larger than a
// ConfigMap of many can hold.
func TestReadBack(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	files, err := filepath.Glob("../../dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard.Dashboard                                                //nolint:staticcheck // the classic schema is what every Grafana reads
		if err := d.UnmarshalJSONStrict(text); err != nil && err.Error() != "" { // an empty list of faults is none
			t.Errorf("%s: %v", file, err)
		}
		if len(text) > 200<<10 {
			t.Errorf("%s: %d bytes", file, len(text))
		}
	}
}

// So do those of the second schema, which has the same panels.
func TestReadBackSecond(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	for file, b := range all(t) {
		text, err := os.ReadFile("../../dashboards/v2/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			APIVersion string                `json:"apiVersion"`
			Kind       string                `json:"kind"`
			Metadata   struct{ Name string } `json:"metadata"`
			Spec       json.RawMessage       `json:"spec"`
		}
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if m.APIVersion != "dashboard.grafana.app/v2" || m.Kind != "Dashboard" || m.Metadata.Name != b.UID {
			t.Errorf("%s: %s %s %s", file, m.APIVersion, m.Kind, m.Metadata.Name)
		}
		var d dashboardv2.Dashboard
		if err := d.UnmarshalJSONStrict(m.Spec); err != nil && err.Error() != "" {
			t.Errorf("%s: %v", file, err)
		}
		if err := json.Unmarshal(m.Spec, &d); err != nil || d.Layout.RowsLayoutKind == nil { // what is strict leaves out parts that are sound
			t.Fatalf("%s: no rows, %v", file, err)
		}
		if d.Title != b.Title || len(d.Elements) != len(b.pictures()) {
			t.Errorf("%s: %s with %d panels, want %s with %d", file, d.Title, len(d.Elements), b.Title, len(b.pictures()))
		}
		laid := 0
		for _, r := range d.Layout.RowsLayoutKind.Spec.Rows {
			items := r.Spec.Layout.GridLayoutKind.Spec.Items
			for _, item := range items {
				if _, there := d.Elements[item.Spec.Element.Name]; there {
					laid++
				}
			}
			if len(items) == 0 || items[0].Spec.Y != 0 {
				t.Errorf("%s: row %s lays out %+v", file, *r.Spec.Title, items)
			}
		}
		if laid != len(d.Elements) {
			t.Errorf("%s: %d of %d panels are laid out", file, laid, len(d.Elements))
		}
	}
}
