// Package gostruct emits the typed structs and the description tables of exporter/telemetry.
package gostruct

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
)

// Emitter writes one file per group, one per scope, and one each for the attributes, the list of scopes and each table.
var Emitter = emit.Emitter{
	Name: "gostruct",
	Doc:  "typed structs and description tables for the exporter",
	Owns: []string{"exporter/telemetry/zz_*.go"},
	Run:  run,
}

//go:embed gostruct.go.tmpl
var text string

var templates = template.Must(template.New("").Option("missingkey=error").Funcs(template.FuncMap{
	"header": emit.Header, "type": fieldType, "rows": rows, "index": index, "goType": goType, "pair": pair,
	"strings": quoteAll, "imports": imports, "kind": func(m *resolve.Metric) string { return kinds[m.Instrument] },
	"floats": func(f []float64) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(f), " ", ", "), "[]") },
}).Parse(text))

var kinds = map[string]string{
	"gauge": "metric.KindGauge", "counter": "metric.KindCounter", "updowncounter": "metric.KindUpDownCounter", "histogram": "metric.KindHistogram",
}

func run(m *resolve.Model) ([]emit.File, error) {
	const dir = "exporter/telemetry/zz_"
	type job struct {
		template, path string
		data           any
	}
	jobs := []job{{"attributes", dir + "attributes.go", m}, {"scopes", dir + "scopes.go", m}}
	for _, g := range m.Groups {
		jobs = append(jobs, job{"group", dir + "group_" + g.Group.Group + ".go", g})
	}
	for _, s := range m.Scopes {
		jobs = append(jobs, job{"scope", dir + "scope_" + s.Name + ".go", s})
	}
	if m.XIDs != nil {
		jobs = append(jobs, job{"xids", dir + "xids.go", m.XIDs})
	}
	if m.Health != nil {
		jobs = append(jobs, job{"health", dir + "health.go", m.Health})
	}
	var files []emit.File
	for _, j := range jobs {
		f, err := emit.Go(templates, j.template, j.path, j.data)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// fieldType is the Go type of a metric's field: a Value, an array per closed attribute, or a
// slice of keyed readings.
func fieldType(m *resolve.Metric) string {
	switch {
	case m.Instrument == "histogram":
		return "[]KeyedHistogram"
	case !m.Closed():
		return "[]metric.Keyed"
	}
	var b strings.Builder
	for _, a := range m.Attributes {
		fmt.Fprintf(&b, "[%d]", len(a.Members))
	}
	return b.String() + "metric.Value"
}

// goType is the Go type of an attribute as a struct field.
func goType(a *resolve.Attribute) string {
	switch a.Type {
	case "int":
		return "int64"
	case "enum":
		return a.GoName
	}
	return "string"
}

// pair is the Go expression that makes a label of a struct field.
func pair(a *resolve.Attribute) string {
	value := "a." + a.GoName
	switch a.Type {
	case "int":
		value = "strconv.FormatInt(" + value + ", 10)"
	case "enum":
		value += ".String()"
	}
	return fmt.Sprintf("metric.Label{Name: %q, Value: %s}", a.Label, value)
}

// row is one combination of the values of closed attributes.
type row struct {
	Labels string // Go expression
	Index  string // Go index expression into the metric's field
}

// rows lists the combinations, the last attribute turning fastest.
func rows(m *resolve.Metric) []row {
	out := []row{{}}
	for _, a := range m.Attributes {
		var next []row
		for _, r := range out {
			for i, member := range a.Members {
				sep := ""
				if r.Labels != "" {
					sep = ", "
				}
				next = append(next, row{
					Labels: r.Labels + sep + fmt.Sprintf("metric.Label{Name: %q, Value: %q}", a.Label, member.ID),
					Index:  r.Index + index(a, i),
				})
			}
		}
		out = next
	}
	return out
}

// index is the Go index expression of an enum's member.
func index(a *resolve.Attribute, i int) string {
	return "[" + a.MemberName(i) + "]"
}

func quoteAll(m *resolve.Metric) string {
	var names []string
	for _, s := range m.Sources {
		names = append(names, fmt.Sprintf("%q", s.Key))
	}
	return strings.Join(names, ", ")
}

// imports are the import lines the file of a group or a scope needs.
func imports(x any) []string {
	const std, ours = `"strconv"`, `"github.com/gpumeter/gpumeter/exporter/metric"`
	isInt := func(a *resolve.Attribute) bool { return a.Type == "int" }
	var numbers bool // turned into label values
	switch x := x.(type) {
	case *resolve.Scope:
		numbers = slices.ContainsFunc(x.Attributes, isInt)
	case *resolve.Group:
		numbers = slices.ContainsFunc(x.Metrics, func(m *resolve.Metric) bool {
			return !m.Closed() && slices.ContainsFunc(m.Attributes, isInt)
		})
		if !slices.ContainsFunc(x.Metrics, func(m *resolve.Metric) bool {
			return m.Instrument != "histogram" || len(m.Attributes) > 0
		}) {
			return nil // nothing but histograms without labels
		}
	}
	if numbers {
		return []string{std, "", ours}
	}
	return []string{ours}
}
