// Package catalogue emits what the spec promises to those who query it: one line a metric.
package catalogue

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
)

const file = "spec/reference/catalogue.tsv"

// Emitter writes one table, sorted by name, so that a diff of it is a list of what changed.
var Emitter = emit.Emitter{
	Name: "catalogue",
	Doc:  "every exported name, to see what changes",
	Owns: []string{file},
	Run:  run,
}

// The test that holds the promises finds the cells of older tables by these words.
var columns = []string{"name", "type", "unit", "otel", "stability", "enabled", "labels", "members"}

func run(m *resolve.Model) ([]emit.File, error) {
	var b bytes.Buffer
	b.WriteString("# " + emit.Header("spec") + "\n")
	b.WriteString(strings.Join(columns, "\t") + "\n")
	for _, x := range slices.SortedFunc(slices.Values(m.Metrics), byProm) {
		b.WriteString(strings.Join(row(x), "\t") + "\n")
	}
	return []emit.File{{Path: file, Data: b.Bytes()}}, nil
}

func byProm(a, b *resolve.Metric) int { return cmp.Compare(a.Prom, b.Prom) }

// row has one cell a column, none of them empty.
func row(m *resolve.Metric) []string {
	enabled := "default"
	if m.OptIn() {
		enabled = "opt-in"
	}
	cells := []string{
		m.Prom, promType(m), m.Unit, m.Name, stability(m), enabled,
		strings.Join(m.Labels(), ","), members(m),
	}
	for i, c := range cells {
		if c == "" {
			cells[i] = "-"
		}
	}
	return cells
}

// promType is what stands in a TYPE line, which knows no updowncounter.
func promType(m *resolve.Metric) string {
	if m.Instrument == "updowncounter" {
		return "gauge"
	}
	return m.Instrument
}

// stability has one word more than the spec: a deprecation is announced here, as a changed line.
func stability(m *resolve.Metric) string {
	if m.Deprecated != nil {
		return "deprecated"
	}
	return cmp.Or(m.Stability, "development")
}

// members are the values the spec itself fixes: those of enum labels, sorted, for their order
// promises nothing, and a histogram's bounds.
func members(m *resolve.Metric) string {
	var out []string
	for _, a := range slices.Concat(m.Scope.AllAttributes(), m.Attributes) {
		if !a.Closed() {
			continue
		}
		var ids []string
		for _, member := range a.Members {
			ids = append(ids, member.ID)
		}
		slices.Sort(ids)
		out = append(out, a.Label+"="+strings.Join(ids, "|"))
	}
	if len(m.Buckets) > 0 {
		var bounds []string
		for _, b := range m.Buckets {
			bounds = append(bounds, strconv.FormatFloat(b, 'g', -1, 64))
		}
		out = append(out, "le="+strings.Join(bounds, "|"))
	}
	return strings.Join(out, ";")
}
