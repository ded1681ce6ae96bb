package dashboard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/gauge"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/piechart"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"github.com/gpumeter/gpumeter/gen/resolve"
)

// colors are what numbers are called.
var colors = map[string]string{"good": "green", "plain": "blue", "warning": "orange", "bad": "red"}

// last takes the newest number of each series.
func last() cog.Builder[common.ReduceDataOptions] {
	return common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})
}

// picture is a panel of its type, with what only that type has.
func picture(p *resolve.Panel) (dashboard.Panel, error) {
	switch p.Type {
	case "stat":
		return stat.NewPanelBuilder().Orientation(common.VizOrientationAuto).ReduceOptions(last()).GraphMode(common.BigValueGraphModeArea).ColorMode(common.BigValueColorModeValue).Build()
	case "gauge":
		return gauge.NewPanelBuilder().Orientation(common.VizOrientationAuto).ReduceOptions(last()).Build()
	case "bargauge":
		return bargauge.NewPanelBuilder().ReduceOptions(last()).Orientation(common.VizOrientationHorizontal).
			DisplayMode(common.BarGaugeDisplayModeBasic).ShowUnfilled(true).Build()
	case "piechart":
		return piechart.NewPanelBuilder().ReduceOptions(last()).PieType(piechart.PieChartTypeDonut).Build()
	case "heatmap":
		return heatmap.NewPanelBuilder().Calculate(!hasBuckets(p)).CellGap(1).YAxis(heat(p)).
			Tooltip(heatmap.NewHeatmapTooltipBuilder().Mode(common.TooltipDisplayModeSingle)).Build()
	case "statetimeline":
		return statetimeline.NewPanelBuilder().MergeValues(true).ShowValue(common.VisibilityModeNever).RowHeight(0.9).FillOpacity(80).
			Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle)).Build()
	case "table":
		return table.NewPanelBuilder().SortBy([]cog.Builder[common.TableSortByFieldState]{
			common.NewTableSortByFieldStateBuilder().DisplayName(sortedBy(p)).Desc(true),
		}).Footer(common.NewTableFooterOptionsBuilder().Reducer([]string{})).Filterable(true).MinWidth(100).Build()
	}
	// A number between two gaps makes no line: without points, an XID that was seen once would not be.
	build := timeseries.NewPanelBuilder().LineWidth(1).FillOpacity(8).ShowPoints(common.VisibilityModeAuto).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.Stack {
		build.FillOpacity(60).LineWidth(0).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
	}
	if p.Thresholds != nil {
		build.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	legend := common.NewVizLegendOptionsBuilder().ShowLegend(true).Placement(common.LegendPlacementBottom).DisplayMode(common.LegendDisplayModeList).Calcs([]string{})
	if w, _ := p.Size(); w > 12 {
		legend.Placement(common.LegendPlacementRight).DisplayMode(common.LegendDisplayModeTable).Calcs([]string{"mean", "max", "lastNotNull"})
	}
	return build.Legend(legend).Build()
}

// heat is the axis of a heatmap, which looks neither for the unit nor for the ends where others have them.
func heat(p *resolve.Panel) *heatmap.YAxisConfigBuilder {
	axis := heatmap.NewYAxisConfigBuilder().AxisPlacement(common.AxisPlacementLeft)
	if p.Unit != nil {
		axis.Unit(p.Unit.ID)
	}
	if p.Min != nil {
		axis.Min(float32(*p.Min))
	}
	if p.Max != nil {
		axis.Max(float32(*p.Max))
	}
	return axis
}

func hasBuckets(p *resolve.Panel) bool {
	return slices.ContainsFunc(p.Queries, func(q *resolve.Query) bool { return q.Labels["le"] })
}

// panel builds one.
func (b builder) panel(d *resolve.Dashboard, p *resolve.Panel) (dashboard.Panel, error) {
	out, err := picture(p)
	if err != nil {
		return out, err
	}
	out.Id, out.Title, out.Description, out.Datasource = &p.ID, &p.Title, ptr(strings.Join(strings.Fields(p.Brief), " ")), &source
	if out.FieldConfig == nil {
		out.FieldConfig = dashboard.NewFieldConfigSource()
	}
	field := &out.FieldConfig.Defaults
	if p.Unit != nil {
		field.Unit, field.Decimals = &p.Unit.ID, p.Unit.Decimals
	}
	field.Min, field.Max = p.Min, p.Max
	if p.Empty != "" {
		field.NoValue = ptr(strings.Join(strings.Fields(p.Empty), " "))
	}
	field.Color = color(p)
	field.Thresholds = thresholds(p)
	if len(p.Values) > 0 {
		field.Mappings = []dashboard.ValueMapping{values(p)}
	}
	for i, q := range p.Queries {
		target, err := b.target(d, p, q, i)
		if err != nil {
			return out, err
		}
		out.Targets = append(out.Targets, target)
	}
	if p.Type == "table" {
		b.columns(&out, p)
	}
	if p.Opens != nil {
		field.Links = []dashboard.DashboardLink{b.opens(d, p)}
	}
	return out, nil
}

// target builds a query. Where only the newest number is shown, only that is asked for.
func (b builder) target(d *resolve.Dashboard, p *resolve.Panel, q *resolve.Query, i int) (variants.Dataquery, error) {
	expr, err := b.expression(d, q.Expr)
	if err != nil {
		return nil, err
	}
	build := prometheus.NewDataqueryBuilder().Expr(expr).Datasource(source).EditorMode(prometheus.QueryEditorModeCode).RefId(string(rune('A' + i)))
	switch p.Type {
	case "stat":
		if strings.Contains(expr, "$__range") { // one number for the whole of it
			build.Instant()
		} else {
			build.Range()
		}
	case "table":
		build.Instant().Format(prometheus.PromQueryFormatTable)
	case "bargauge", "gauge", "piechart":
		build.Instant()
	case "heatmap":
		build.Range()
		if q.Labels["le"] {
			build.Format(prometheus.PromQueryFormatHeatmap)
		}
	default:
		build.Range()
	}
	legend := q.Legend
	if legend == "" && q.Labels["le"] {
		legend = "{{le}}"
	}
	if legend != "" {
		build.LegendFormat(b.text(legend))
	}
	return build.Build()
}

// color: what is good or bad decides where that is said, else each series has its own, the same in all
// panels by its name.
func color(p *resolve.Panel) *dashboard.FieldColor {
	mode := dashboard.FieldColorModeIdPaletteClassicByName
	if p.Type == "stat" || p.Type == "gauge" || p.Type == "table" || p.Thresholds != nil && p.Type != "timeseries" {
		mode = dashboard.FieldColorModeIdThresholds
	}
	return &dashboard.FieldColor{Mode: mode}
}

func thresholds(p *resolve.Panel) *dashboard.ThresholdsConfig {
	out := &dashboard.ThresholdsConfig{Mode: dashboard.ThresholdsModeAbsolute}
	for i, t := range p.Thresholds {
		step := dashboard.Threshold{Color: colors[t.Is], Value: ptr(t.From)}
		if i == 0 { // and all below
			step.Value = nil
		}
		out.Steps = append(out.Steps, step)
	}
	if out.Steps == nil {
		out.Steps = []dashboard.Threshold{{Color: colors["plain"]}}
	}
	return out
}

// values says what single numbers are called.
func values(p *resolve.Panel) dashboard.ValueMapping {
	m := dashboard.NewValueMap()
	m.Options = map[string]dashboard.ValueMappingResult{}
	for i, e := range p.Values {
		m.Options[e.Key] = dashboard.ValueMappingResult{Text: ptr(e.Value), Index: ptr(int32(i))}
	}
	return dashboard.ValueMapping{ValueMap: m}
}

// opens leads to another dashboard, with the labels of the series as what is chosen there, and what is
// chosen here for the rest.
func (b builder) opens(d *resolve.Dashboard, p *resolve.Panel) dashboard.DashboardLink {
	parts := []string{"var-datasource=${datasource}", "${__url_time_range}"}
	for _, v := range p.Opens.Variables {
		switch {
		case p.Queries[0].Labels[v.Label] && p.Type == "table":
			parts = append(parts, fmt.Sprintf("var-%s=${__data.fields[%q]}", v.Name, b.head(v.Label)))
		case p.Queries[0].Labels[v.Label]:
			parts = append(parts, fmt.Sprintf("var-%s=${__field.labels.%s}", v.Name, b.label(v.Label)))
		case slices.Contains(d.Variables, v):
			parts = append(parts, "${"+v.Name+":queryparam}")
		}
	}
	return dashboard.DashboardLink{
		Title: "Open " + p.Opens.Title, Type: dashboard.DashboardLinkTypeLink, Tags: []string{},
		Url: ptr("/d/" + p.Opens.UID + "?" + strings.Join(parts, "&")),
	}
}
