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
	if p.Empty != "" { // it is said where the table has no line, not in each cell that has no number
		out.FieldConfig.Overrides = append(out.FieldConfig.Overrides, dashboard.DashboardFieldConfigSourceOverrides{
			Matcher: dashboard.MatcherConfig{Id: "byRegexp", Options: ".*"}, Properties: []dashboard.DynamicConfigValue{{Id: "noValue", Value: ""}},
		})
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
		properties = append(properties, dashboard.DynamicConfigValue{Id: "custom.width", Value: wide(q.Name, q.Unit.Name)})
		if q.Unit.Name == "state" && len(p.Values) == 0 {
			properties = append(properties, dashboard.DynamicConfigValue{Id: "mappings", Value: []dashboard.ValueMapping{yesOrNo()}})
		}
		if q.Unit.Decimals != nil {
			properties = append(properties, dashboard.DynamicConfigValue{Id: "decimals", Value: *q.Unit.Decimals})
		}
		out.FieldConfig.Overrides = append(out.FieldConfig.Overrides, dashboard.DashboardFieldConfigSourceOverrides{
			Matcher: dashboard.MatcherConfig{Id: "byName", Options: q.Name}, Properties: properties,
		})
	}
	if slices.Contains(labels, "gpu_index") {
		head := b.head("gpu_index")
		out.FieldConfig.Overrides = append(out.FieldConfig.Overrides, dashboard.DashboardFieldConfigSourceOverrides{
			Matcher: dashboard.MatcherConfig{Id: "byName", Options: head}, Properties: []dashboard.DynamicConfigValue{{Id: "custom.width", Value: wide(head, "")}},
		})
	}
	out.Transformations = []dashboard.DataTransformerConfig{
		{Id: "merge", Options: map[string]any{}},
		{Id: "organize", Options: map[string]any{"excludeByName": map[string]bool{"Time": true}, "indexByName": order, "renameByName": rename}},
	}
}

// wide is how wide a column of numbers is, in pixels: what its head needs, with the arrow and the funnel in
// it, and what "20 minutes ago" does. Names have what numbers leave, or UUIDs would be cut for the sake of zeros.
func wide(head, unit string) float64 {
	least := 90
	if unit == "time" {
		least = 130
	}
	return float64(max(least, 8*len(head)+44))
}

// yesOrNo is what states are called in tables, where there is no colour to tell.
func yesOrNo() dashboard.ValueMapping {
	m := dashboard.NewValueMap()
	m.Options = map[string]dashboard.ValueMappingResult{
		"0": {Text: ptr("no"), Index: ptr(int32(0))},
		"1": {Text: ptr("yes"), Index: ptr(int32(1))},
	}
	return dashboard.ValueMapping{ValueMap: m}
}
