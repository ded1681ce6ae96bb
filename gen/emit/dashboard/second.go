package dashboard

import (
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/dashboardv2"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/resource"
)

// second writes a dashboard in Grafana's second schema: the same panels, as elements that rows lay out.
func second(d dashboard.Dashboard, generated string) (resource.Manifest, error) {
	out := dashboardv2.NewDashboard()
	out.Title, out.Description, out.Tags, out.Editable = *d.Title, d.Description, d.Tags, d.Editable
	out.CursorSync = dashboardv2.DashboardCursorSyncCrosshair
	out.TimeSettings.From, out.TimeSettings.To, out.TimeSettings.Timezone = d.Time.From, d.Time.To, d.Timezone
	if d.Refresh != nil {
		out.TimeSettings.AutoRefresh = *d.Refresh
	}
	out.Elements = map[string]dashboardv2.Element{}
	if err := same(d.Links, &out.Links); err != nil {
		return resource.Manifest{}, err
	}
	for _, v := range d.Templating.List {
		kind, err := variable(v)
		if err != nil {
			return resource.Manifest{}, fmt.Errorf("variable %s: %w", v.Name, err)
		}
		out.Variables = append(out.Variables, kind)
	}
	for _, a := range d.Annotations.List {
		if a.Expr != nil {
			out.Annotations = append(out.Annotations, annotation(a))
		}
	}
	rows := dashboardv2.NewRowsLayoutKind()
	rows.Spec.Rows = []dashboardv2.RowsLayoutRowKind{}
	for _, p := range d.Panels {
		if p.RowPanel != nil {
			rows.Spec.Rows = append(rows.Spec.Rows, row(*p.RowPanel))
		}
		last := &rows.Spec.Rows[len(rows.Spec.Rows)-1].Spec
		panels := []dashboard.Panel{}
		if p.Panel != nil {
			panels = append(panels, *p.Panel)
		} else {
			panels = append(panels, p.RowPanel.Panels...)
		}
		for _, panel := range panels {
			element, err := element(panel)
			if err != nil {
				return resource.Manifest{}, fmt.Errorf("panel %q: %w", *panel.Title, err)
			}
			name := fmt.Sprintf("panel-%d", *panel.Id)
			out.Elements[name] = dashboardv2.Element{PanelKind: element}
			item := dashboardv2.NewGridLayoutItemKind()
			item.Spec.X, item.Spec.Width, item.Spec.Height = int64(panel.GridPos.X), int64(panel.GridPos.W), int64(panel.GridPos.H)
			item.Spec.Y = int64(panel.GridPos.Y) // rows are told apart by order: only the lines within one count
			item.Spec.Element.Name = name
			last.Layout.GridLayoutKind.Spec.Items = append(last.Layout.GridLayoutKind.Spec.Items, *item)
		}
	}
	for _, r := range rows.Spec.Rows {
		upwards(r.Spec.Layout.GridLayoutKind.Spec.Items)
	}
	out.Layout.RowsLayoutKind = rows
	return resource.Manifest{
		ApiVersion: "dashboard.grafana.app/v2", Kind: "Dashboard", Spec: *out,
		Metadata: resource.Metadata{Name: *d.Uid, Annotations: map[string]string{"generated": generated}},
	}, nil
}

// upwards has the lines of a row begin with 0.
func upwards(items []dashboardv2.GridLayoutItemKind) {
	for i := len(items) - 1; i >= 0; i-- {
		items[i].Spec.Y -= items[0].Spec.Y
	}
}

// same takes what both schemas write the same way.
func same(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

func row(r dashboard.RowPanel) dashboardv2.RowsLayoutRowKind {
	out := dashboardv2.NewRowsLayoutRowKind()
	out.Spec.Title, out.Spec.Collapse = r.Title, &r.Collapsed
	out.Spec.Layout.GridLayoutKind = dashboardv2.NewGridLayoutKind()
	out.Spec.Layout.GridLayoutKind.Spec.Items = []dashboardv2.GridLayoutItemKind{}
	return *out
}

// element is a panel.
func element(p dashboard.Panel) (*dashboardv2.PanelKind, error) {
	out := dashboardv2.NewPanelKind()
	s := &out.Spec
	s.Id, s.Title, s.Description = float64(*p.Id), *p.Title, *p.Description
	s.VizConfig.Group, s.VizConfig.Spec.Options = p.Type, p.Options
	if err := same(p.FieldConfig, &s.VizConfig.Spec.FieldConfig); err != nil {
		return nil, err
	}
	for _, t := range p.Targets {
		q, ok := t.(prometheus.Dataquery)
		if !ok {
			return nil, fmt.Errorf("a query of %T", t)
		}
		query := dashboardv2.NewPanelQueryKind()
		query.Spec.RefId = *q.RefId
		q.RefId, q.Datasource = nil, nil
		query.Spec.Query = ask(q)
		s.Data.Spec.Queries = append(s.Data.Spec.Queries, *query)
	}
	for _, t := range p.Transformations {
		kind := dashboardv2.NewTransformationKind()
		kind.Group, kind.Spec.Options = t.Id, t.Options
		s.Data.Spec.Transformations = append(s.Data.Spec.Transformations, *kind)
	}
	return out, nil
}

// ask is a query of the data source that is chosen.
func ask(spec any) dashboardv2.DataQueryKind {
	out := dashboardv2.NewDataQueryKind()
	out.Group, out.Version, out.Spec = "prometheus", "v0", spec
	out.Datasource = &dashboardv2.Dashboardv2DataQueryKindDatasource{Name: source.Uid}
	return *out
}

func annotation(a dashboard.AnnotationQuery) dashboardv2.AnnotationQueryKind {
	out := dashboardv2.NewAnnotationQueryKind()
	out.Spec.Name, out.Spec.Enable, out.Spec.IconColor = a.Name, a.Enable, a.IconColor
	out.Spec.Query = ask(map[string]any{"expr": *a.Expr})
	out.Spec.LegacyOptions = map[string]any{"textFormat": *a.TextFormat, "titleFormat": *a.TitleFormat}
	return *out
}

// variable is a choice.
func variable(v dashboard.VariableModel) (dashboardv2.VariableKind, error) {
	var out dashboardv2.VariableKind
	var current dashboardv2.VariableOption
	if v.Current != nil {
		if err := same(v.Current, &current); err != nil {
			return out, err
		}
	} else {
		current.Text.String, current.Value.String = ptr(""), ptr("")
	}
	switch v.Type {
	case dashboard.VariableTypeDatasource:
		out.DatasourceVariableKind = dashboardv2.NewDatasourceVariableKind()
		s := &out.DatasourceVariableKind.Spec
		s.Name, s.Label, s.PluginId, s.Current, s.Options = v.Name, v.Label, *v.Query.String, current, []dashboardv2.VariableOption{}
	case dashboard.VariableTypeTextbox:
		out.TextVariableKind = dashboardv2.NewTextVariableKind()
		s := &out.TextVariableKind.Spec
		s.Name, s.Label, s.Description, s.Current, s.Query = v.Name, v.Label, v.Description, current, *v.Query.String
	case dashboard.VariableTypeQuery:
		out.QueryVariableKind = dashboardv2.NewQueryVariableKind()
		s := &out.QueryVariableKind.Spec
		s.Name, s.Label, s.Description, s.Current, s.Definition, s.AllValue = v.Name, v.Label, v.Description, current, v.Definition, v.AllValue
		s.Options, s.Multi, s.IncludeAll = []dashboardv2.VariableOption{}, *v.Multi, *v.IncludeAll
		s.Refresh, s.Sort = dashboardv2.VariableRefreshOnTimeRangeChanged, dashboardv2.VariableSortNaturalAsc
		s.Query = ask(map[string]any{"query": *v.Query.String})
	default:
		return out, fmt.Errorf("of type %s", v.Type)
	}
	return out, nil
}
