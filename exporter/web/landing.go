package web

import (
	"cmp"
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

const landingHead = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>gpumeter</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; color: #222; background: #fff }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums; white-space: nowrap }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } a { color: #8bf } th, td { border-color: #444 } }
</style>
`

// landing shows which devices there are and where to go. It needs no script.
func (c Config) landing(w http.ResponseWriter, r *http.Request) {
	var b strings.Builder
	b.WriteString(landingHead)
	b.WriteString("<h1>gpumeter " + html.EscapeString(c.Version) + "</h1>\n")
	b.WriteString(`<p><a href="metrics">metrics</a> · <a href="readyz">how the sources are</a> · <a href="healthz">health</a> · <a href="debug/attribution">whose work it is</a></p>` + "\n")
	released := c.Feed.Released()
	if notice := releaseNotice(released); notice != "" {
		if len(released.Holding) > 0 {
			notice += "; still held: " + strings.Join(released.Holding, ", ")
		}
		b.WriteString("<p><strong>" + html.EscapeString(strings.ToUpper(notice[:1])+notice[1:]) + ".</strong></p>\n")
	}
	devices := c.Feed.Snapshot(r.Context()).Devices
	if len(devices) == 0 {
		b.WriteString("<p>No accelerator is found here.</p>\n")
	} else {
		b.WriteString("<table>\n<tr><th>Index<th>Model<th>State<th>Busy<th>Memory<th>Power<th>Temperature<th>Whose<th>UUID\n")
		for i := range devices {
			d := &devices[i]
			b.WriteString("<tr>")
			for _, cell := range []string{
				d.Labels.Get("gpu_index"), d.Identity.Model, d.State(),
				number(d.Read.Utilization.Utilization, 100, " %"),
				number(d.Read.Memory.Usage, 1.0/(1<<30), "") + " / " + number(d.Read.Memory.Limit, 1.0/(1<<30), " GiB"),
				number(d.Read.Power.Draw, 1, " W"),
				number(d.Read.Thermal.Temperature[telemetry.TemperatureSensorCore], 1, " °C"),
				cmp.Or(d.Whose(), "–"), d.Identity.UUID,
			} {
				b.WriteString("<td>" + html.EscapeString(strings.ToValidUTF8(cell, "\uFFFD")))
			}
			b.WriteByte('\n')
		}
		b.WriteString("</table>\n")
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	io.WriteString(w, b.String()) //nolint:errcheck // the client has gone
}

// number shows a reading, or a dash when there is none.
func number(v metric.Value, scale float64, unit string) string {
	n, ok := v.Get()
	if !ok {
		return "–"
	}
	return strconv.FormatFloat(n*scale, 'f', 0, 64) + unit
}
