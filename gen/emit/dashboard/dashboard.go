// Package dashboard emits Grafana dashboards: classic JSON, the second schema, and what the mixin takes.
package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/promql"
	"github.com/gpumeter/gpumeter/gen/resolve"
)

// Emitter writes dashboards, and the same for the mixin.
var Emitter = emit.Emitter{
	Name: "dashboard",
	Doc:  "Grafana dashboards",
	Owns: []string{"dashboards/*.json", "dashboards/v2/*.json", "mixin/generated/dashboards/*.json", "mixin/generated/dashboards.libsonnet"},
	Run:  run,
}

// tag is that of all dashboards, by which they find each other.
const tag = "gpumeter"

// builder makes dashboards of one model, with what is put into their expressions.
type builder struct {
	dir     string
	second  string // the folder for the second schema; none: it is not written
	prefix  string // of titles
	model   *resolve.Model
	job     *labels.Matcher // into the selectors of metrics
	cluster string          // the label that tells clusters apart
}

func run(m *resolve.Model) ([]emit.File, error) {
	var files []emit.File
	for _, b := range []builder{
		{dir: "dashboards/", second: "dashboards/v2/", prefix: "gpumeter / ", model: m, job: labels.MustNewMatcher(labels.MatchEqual, "job", "gpumeter"), cluster: "cluster"},
		// Matchers are printed in the order of their labels: what stands for the job must sort as job does.
		{dir: "mixin/generated/dashboards/", model: m, job: labels.MustNewMatcher(labels.MatchEqual, "jobSelector__", ""), cluster: "clusterLabel__"},
	} {
		for _, d := range m.Dashboards {
			out, err := b.dashboard(d)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.Dashboard.Dashboard, err)
			}
			data, err := marshal(out)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.Dashboard.Dashboard, err)
			}
			files = append(files, emit.File{Path: b.dir + file(d), Data: data})
			if b.second == "" {
				continue
			}
			resource, err := second(out, emit.Header(d.File))
			if err != nil {
				return nil, fmt.Errorf("%s: second schema: %w", d.Dashboard.Dashboard, err)
			}
			if data, err = marshal(resource); err != nil {
				return nil, fmt.Errorf("%s: second schema: %w", d.Dashboard.Dashboard, err)
			}
			files = append(files, emit.File{Path: b.second + file(d), Data: data})
		}
	}
	if files == nil {
		return nil, nil
	}
	var list bytes.Buffer
	fmt.Fprintf(&list, "// %s\n{\n", emit.Header("spec/dashboards"))
	for _, d := range m.Dashboards {
		fmt.Fprintf(&list, "  '%s': importstr 'dashboards/%[1]s',\n", file(d))
	}
	list.WriteString("}\n")
	return append(files, emit.File{Path: "mixin/generated/dashboards.libsonnet", Data: list.Bytes()}), nil
}

// file is what a dashboard's is called.
func file(d *resolve.Dashboard) string { return "gpumeter-" + d.Dashboard.Dashboard + ".json" }

// marshal writes JSON as people read it.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// dashboard builds one.
func (b builder) dashboard(d *resolve.Dashboard) (dashboard.Dashboard, error) {
	since := d.Since
	if since == "" {
		since = "6h"
	}
	refresh := "1m"
	if long, err := model.ParseDuration(since); err != nil {
		return dashboard.Dashboard{}, err
	} else if long > model.Duration(24*time.Hour) { // each minute it would ask for a month anew
		refresh = ""
	}
	build := dashboard.NewDashboardBuilder(b.prefix+d.Title).
		Uid(d.UID).Description(d.Brief+" "+emit.Header(d.File)).Tags([]string{tag}).Timezone("browser").Readonly().
		Tooltip(dashboard.DashboardCursorSyncCrosshair).Time("now-"+since, "now").Refresh(refresh).
		Link(dashboard.NewDashboardLinkBuilder("gpumeter").Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{tag}).AsDropdown(true).IncludeVars(true).KeepTime(true))
	b.variables(build, d)
	for _, a := range d.Annotations {
		expr, err := b.expression(d, a.Expr)
		if err != nil {
			return dashboard.Dashboard{}, err
		}
		build.Annotation(dashboard.NewAnnotationQueryBuilder().Name(a.Title).Datasource(source).Enable(true).IconColor(a.Color).
			Expr(expr).TextFormat(b.text(a.Text)).TitleFormat(a.Title))
	}
	out, err := build.Build()
	if err != nil {
		return out, err
	}
	return out, b.rows(&out, d)
}

// source is the one chosen at the top of the dashboard.
var source = common.DataSourceRef{Type: ptr("prometheus"), Uid: ptr("${datasource}")}

func ptr[T any](v T) *T { return &v }

// rows lays the panels out: from the left, and the next line begins when a line is full.
func (b builder) rows(out *dashboard.Dashboard, d *resolve.Dashboard) error {
	var y uint32
	for _, row := range d.Rows {
		r := dashboard.RowPanel{
			Type: "row", Title: ptr(row.Title), Id: row.ID, Collapsed: row.Collapsed, Panels: []dashboard.Panel{},
			GridPos: &dashboard.GridPos{X: 0, Y: y, W: 24, H: 1},
		}
		y++
		var panels []dashboard.Panel
		var x, tall uint32
		for _, p := range row.Panels {
			w, h := p.Size()
			if x+w > 24 {
				x, y, tall = 0, y+tall, 0
			}
			panel, err := b.panel(d, p)
			if err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
			panel.GridPos = &dashboard.GridPos{X: x, Y: y, W: w, H: h}
			panels = append(panels, panel)
			x, tall = x+w, max(tall, h)
		}
		y += tall
		if row.Collapsed { // then they are within it
			r.Panels, panels = panels, nil
		}
		out.Panels = append(out.Panels, dashboard.PanelOrRowPanel{RowPanel: &r})
		for i := range panels {
			out.Panels = append(out.Panels, dashboard.PanelOrRowPanel{Panel: &panels[i]})
		}
	}
	return nil
}

// expression puts in the job, what is chosen, what is typed, and the cluster's label.
func (b builder) expression(d *resolve.Dashboard, e *promql.Expr) (string, error) {
	choose := d.Matchers(b.model.LabelsOf)
	e, err := e.Match(func(metric string) []*labels.Matcher {
		out := choose(metric)
		if !strings.Contains(metric, ":") { // the series of a recording rule are of no job
			out = append(out, b.job)
		}
		return out
	})
	if err != nil {
		return "", err
	}
	if e, err = e.Rename("cluster", b.cluster); err != nil {
		return "", err
	}
	// An exponent: who empties the field asks for a metric e0, which nobody has, instead of nonsense.
	e, err = e.With(func(name string) (string, bool) { return "${" + name + "}e0", true })
	if err != nil {
		return "", err
	}
	return e.Panel(), nil
}
