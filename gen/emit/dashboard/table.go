package dashboard

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/gpumeter/gpumeter/gen/resolve"
)

// head is what a column with a label is called.
func (b builder) head(label string) string {
	for _, e := range b.model.Vocabulary.Labels {
		if e.Key == label {
			return e.Value
		}
	}
	return label
}

// sortedBy is the column a table is sorted by.
func sortedBy(p *resolve.Panel) string {
	if p.Sort != "" {
		return p.Sort
	}
	return p.Queries[0].Name
}

// columns joins what the queries of a table answer to one line for each set of labels, and names and
// orders the columns: labels first, then numbers.
func (b builder) columns(out *dashboard.Panel, p *resolve.Panel) {
	labels := p.Columns
	for _, q := range p.Queries {
		for _, l := range q.Labels.Sorted() {
			if !slices.Contains(labels, l) {
				labels = append(labels, l)
			}
		}
	}
	rename, order := map[string]string{}, map[string]int{}
	put := func(name, head string) {
		rename[name], order[name] = head, len(order)
	}
	for _, l := range labels {
		put(b.label(l), b.head(l))
	}
	for i, q := range p.Queries {
		name := "Value #" + string(rune('A'+i))
		if len(p.Queries) == 1 {
			name = "Value"
		}
		put(name, q.Name)
		properties := []dashboard.DynamicConfigValue{{Id: "unit", Value: q.Unit.ID}}
		if q.Unit.Decimals != nil {
			properties = append(properties, dashboard.DynamicConfigValue{Id: "decimals", Value: *q.Unit.Decimals})
		}
		out.FieldConfig.Overrides = append(out.FieldConfig.Overrides, dashboard.DashboardFieldConfigSourceOverrides{
			Matcher: dashboard.MatcherConfig{Id: "byName", Options: q.Name}, Properties: properties,
		})
	}
	out.Transformations = []dashboard.DataTransformerConfig{
		{Id: "merge", Options: map[string]any{}},
		{Id: "organize", Options: map[string]any{"excludeByName": map[string]bool{"Time": true}, "indexByName": order, "renameByName": rename}},
	}
}
