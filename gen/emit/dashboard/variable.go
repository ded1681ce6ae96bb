package dashboard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/gpumeter/gpumeter/gen/resolve"
)

// variables adds the data source and what can be chosen; each narrows those after it.
func (b builder) variables(build *dashboard.DashboardBuilder, d *resolve.Dashboard) {
	build.WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"))
	for i, v := range d.Variables {
		if v.Typed {
			typed := dashboard.StringOrArrayOfString{String: &v.Default}
			build.WithVariable(dashboard.NewTextBoxVariableBuilder(v.Name).Label(v.Title).Description(v.Brief).
				DefaultValue(dashboard.StringOrMap{String: &v.Default}).Current(dashboard.VariableOption{Selected: ptr(true), Text: typed, Value: typed}))
			continue
		}
		query := b.values(v, d.Variables[:i])
		build.WithVariable(dashboard.NewQueryVariableBuilder(v.Name).Label(v.Title).Description(v.Brief).
			Datasource(source).Query(dashboard.StringOrMap{String: &query}).Definition(query).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortNaturalAsc).
			Multi(true).IncludeAll(true).AllValue(".*").
			Current(dashboard.VariableOption{
				Selected: ptr(true),
				Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
				Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
			}))
	}
}

// values asks for the values of a label, among what is chosen in the variables before.
func (b builder) values(v *resolve.Variable, before []*resolve.Variable) string {
	has := b.model.LabelsOf(v.From)
	var matchers []string
	if !strings.Contains(v.From, ":") {
		matchers = append(matchers, b.job.String())
	}
	for _, x := range before {
		if slices.Contains(has, x.Label) {
			matchers = append(matchers, fmt.Sprintf("%s=~%q", b.label(x.Label), "$"+x.Name))
		}
	}
	series := v.From
	if matchers != nil {
		series += "{" + strings.Join(matchers, ",") + "}"
	}
	return fmt.Sprintf("label_values(%s, %s)", series, b.label(v.Label))
}

// text names labels as they are called.
func (b builder) text(legend string) string {
	return strings.ReplaceAll(legend, "{{cluster}}", "{{"+b.cluster+"}}")
}

// label is what a label is called where the clusters are told apart otherwise.
func (b builder) label(name string) string {
	if name == "cluster" {
		return b.cluster
	}
	return name
}
