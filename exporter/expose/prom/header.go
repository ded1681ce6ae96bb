package prom

import (
	"strings"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

var (
	escapeText        = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeOpenMetrics = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// targetInfo is the one metric that OpenMetrics gives a meaning of its own, and wants to be an info.
const targetInfo = "target.info"

// header is what stands above a family's first sample. OpenMetrics names a counter without
// _total there, and has a line for the unit.
func header(d *metric.Desc, format Format) string {
	if format == Text {
		return "# HELP " + d.Prom + " " + escapeText.Replace(d.Help) + "\n# TYPE " + d.Prom + " " + d.Kind.Prom() + "\n"
	}
	if d.Name == targetInfo { // the name of the family has no _info then
		return "# HELP target " + escapeOpenMetrics.Replace(d.Help) + "\n# TYPE target info\n"
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
