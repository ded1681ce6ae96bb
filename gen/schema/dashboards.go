package schema

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Vocabulary is what all dashboards share, so that one thing is called, chosen and shown one way.
type Vocabulary struct {
	Pos         `yaml:"-"`
	Variables   []Variable  `yaml:"variables" need:"true" doc:"What can be chosen at the top of a dashboard, the wider first."`
	Annotations []Marker    `yaml:"annotations" need:"true" doc:"What can be marked on the time axis."`
	Labels      Map[string] `yaml:"labels" need:"true" doc:"What labels are called in the heads of tables."`
	Units       Map[Unit]   `yaml:"units" need:"true" doc:"How numbers are shown."`
}

// Variable is a choice at the top of a dashboard.
type Variable struct {
	Pos   `yaml:"-"`
	Name  string `yaml:"name" need:"true" doc:"One word; an address has it as var-<name>."`
	Title string `yaml:"title" need:"true" doc:"What is shown beside it."`
	Brief string `yaml:"brief" need:"true" doc:"One sentence: what is chosen."`
	Label string `yaml:"label" doc:"The label it selects by, on every series that can have it. Only a number has none."`
	From  string `yaml:"from" doc:"The series whose values of the label can be chosen: of few, such as a recording rule's."`

	Typed   bool   `yaml:"typed" doc:"It is typed, not chosen from a list. Without a label it is a number, config:<name> in expressions."`
	Default string `yaml:"default" doc:"What is typed at first. Default nothing, which selects nothing."`
}

// Marker is a query whose results are marked on the time axis.
type Marker struct {
	Pos   `yaml:"-"`
	Name  string `yaml:"name" need:"true" doc:"One word, by which dashboards ask for it."`
	Title string `yaml:"title" need:"true" doc:"What the switch says."`
	Brief string `yaml:"brief" need:"true" doc:"One sentence: what is marked."`
	Expr  string `yaml:"expr" need:"true" doc:"PromQL; each series with a number above 0 is a mark."`
	Text  string `yaml:"text" need:"true" doc:"What the mark says, with {{label}}."`
	Color string `yaml:"color" need:"true" doc:"Its colour."`
}

// Unit is how numbers are shown.
type Unit struct {
	ID       string   `yaml:"id" need:"true" doc:"Grafana's name of it."`
	Of       []string `yaml:"of" doc:"The units of metrics that are shown so."`
	Decimals *float64 `yaml:"decimals" doc:"Digits after the point. Default as many as are needed."`
}

// Dashboard is one file of spec/dashboards.
type Dashboard struct {
	Pos         `yaml:"-"`
	Dashboard   string   `yaml:"dashboard" need:"true" doc:"Its name, the same as the file's."`
	UID         string   `yaml:"uid" need:"true" doc:"What addresses have of it; it never changes."`
	Title       string   `yaml:"title" need:"true" doc:"What is shown."`
	Brief       string   `yaml:"brief" need:"true" doc:"One sentence: what it answers, and for whom."`
	Since       string   `yaml:"since" doc:"What it shows at first: as long until now. Above 24h it is not asked anew each minute. Default 6h."`
	Series      uint32   `yaml:"series" doc:"The most series one of its queries may read of 10,000 devices, with its variables set. Default 5000."`
	Variables   []string `yaml:"variables" need:"true" doc:"What can be chosen, by names of the vocabulary."`
	Annotations []string `yaml:"annotations" doc:"What is marked, by names of the vocabulary."`
	Rows        []Row    `yaml:"rows" need:"true" doc:"Its rows, from the top."`
}

// Row is a row of panels.
type Row struct {
	Pos       `yaml:"-"`
	Title     string  `yaml:"title" need:"true" doc:"What it is about."`
	Collapsed bool    `yaml:"collapsed" doc:"Closed until somebody opens it."`
	Panels    []Panel `yaml:"panels" need:"true" doc:"From the left; the next line begins when a line is full."`
}

// Panel is one picture.
type Panel struct {
	Pos        `yaml:"-"`
	Title      string      `yaml:"title" need:"true" doc:"What is shown."`
	Brief      string      `yaml:"brief" need:"true" doc:"What it means and what to do with it; shown when one points at the title."`
	Answers    string      `yaml:"answers" doc:"The question it answers, where people ask it by name."`
	Type       string      `yaml:"type" need:"true" enum:"stat,gauge,timeseries,bargauge,table,heatmap,statetimeline,piechart" doc:"What sort of picture."`
	Unit       string      `yaml:"unit" doc:"How its numbers are shown, by a name of the vocabulary. Default that of the metric."`
	Width      uint32      `yaml:"width" doc:"Of 24. Default 4 for a stat or gauge, 24 for a table or heatmap, else 12."`
	Height     uint32      `yaml:"height" doc:"In lines. Default 4 for a stat or gauge, else 8."`
	Stack      bool        `yaml:"stack" doc:"Of a timeseries: the series add up."`
	Min        *float64    `yaml:"min" doc:"Where the axis begins."`
	Max        *float64    `yaml:"max" doc:"Where it ends."`
	Thresholds []Threshold `yaml:"thresholds" doc:"From which number on it is which colour, the lowest first."`
	Values     Map[string] `yaml:"values" doc:"What single numbers are called: 0 and 1 of a state."`
	Empty      string      `yaml:"empty" doc:"What it says when there are no data, where that is normal: why."`
	Open       string      `yaml:"open" doc:"The dashboard that a click on a series opens, with its labels as the variables there."`
	Columns    []string    `yaml:"columns" doc:"Of a table: its labels from the left. Default as the first query has them."`
	Sort       string      `yaml:"sort" doc:"Of a table: the query by whose numbers it is sorted, the most first. Default the first."`
	Queries    []Query     `yaml:"queries" need:"true" doc:"What it shows."`
}

// Threshold is a colour from a number on.
type Threshold struct {
	Pos  `yaml:"-"`
	From float64 `yaml:"from" need:"true" doc:"The number, in the unit of the panel."`
	Is   string  `yaml:"is" need:"true" enum:"good,plain,warning,bad" doc:"What that is."`
}

// Query is one of a panel.
type Query struct {
	Pos    `yaml:"-"`
	Name   string `yaml:"name" doc:"Of a table: the head of its column."`
	Expr   string `yaml:"expr" need:"true" doc:"PromQL. Selectors of job, cluster and the variables are put in; [$__range] and [$__rate_interval] are Grafana's, config:<variable> a number that is typed."`
	Legend string `yaml:"legend" doc:"What a series is called, with {{label}}."`
	Unit   string `yaml:"unit" doc:"Of a table: how its column is shown. Default that of the panel."`
}

// loadDashboards reads the vocabulary and what spec/dashboards holds; both may be missing.
func loadDashboards(root fs.FS, spec *Spec, faults *Faults) {
	entries, err := fs.ReadDir(root, "dashboards")
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		faults.Add(Pos{File: "spec/dashboards"}, "cannot be read: %v", err)
	}
	read(root, "vocabulary.yaml", &spec.Vocabulary, faults)
	for _, entry := range entries {
		name := path.Join("dashboards", entry.Name())
		word, ok := strings.CutSuffix(entry.Name(), ".yaml")
		if !ok || entry.IsDir() {
			faults.Add(Pos{File: path.Join("spec", name)}, "only files named <dashboard>.yaml belong here")
			continue
		}
		var d Dashboard
		if !read(root, name, &d, faults) {
			continue
		}
		if d.Dashboard != word {
			faults.Add(d.Pos, "dashboard %q stands in %s.yaml; they must agree", d.Dashboard, word)
		}
		spec.Dashboards = append(spec.Dashboards, d)
	}
}
