// Package prom serves snapshots to Prometheus: the text formats streamed, all others through a
// warm Gatherer and client_golang.
package prom

import (
	"strings"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

var (
	escapeText        = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeOpenMetrics = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// header is what stands above a family's first sample. OpenMetrics names a counter without
// _total there, and has a line for the unit.
func header(d *metric.Desc, format Format) string {
	if format == Text {
		return "# HELP " + d.Prom + " " + escapeText.Replace(d.Help) + "\n# TYPE " + d.Prom + " " + d.Kind.Prom() + "\n"
	}
	name := d.Prom
	if d.Kind == metric.KindCounter {
		name = strings.TrimSuffix(name, "_total")
	}
	h := "# HELP " + name + " " + escapeOpenMetrics.Replace(d.Help) + "\n# TYPE " + name + " " + d.Kind.Prom() + "\n"
	if d.PromUnit != "" {
		h += "# UNIT " + name + " " + d.PromUnit + "\n"
	}
	return h
}
