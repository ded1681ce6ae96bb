package resolve

import (
	"math"
	"strconv"
	"strings"

	"github.com/gpumeter/gpumeter/gen/schema"
)

// rateWindow is that of the queries the pages show: four of the scrape intervals most sites have.
const rateWindow = "[2m]"

// query writes what gives another exporter's number from ours, which it is scale times.
func query(a *Answer, scale float64) string {
	m := a.Metric
	var out string
	switch a.As {
	case "differs":
		return ""
	case "":
		out = m.Prom + selector(a)
	case "rate":
		out = rate(m.Prom, a)
	case "mean":
		out = rate(m.Prom+"_sum", a) + " / " + rate(m.Prom+"_count", a)
	default: // p and a number
		q, _ := strings.CutPrefix(a.As, "p")
		out = "histogram_quantile(0." + strings.TrimRight(q, "0") + ", " + rate(m.Prom+"_bucket", a) + ")"
	}
	if len(a.over) > 0 {
		var labels []string
		for _, x := range a.over {
			labels = append(labels, x.Label)
		}
		out = "sum without (" + strings.Join(labels, ", ") + ") (" + out + ")"
	}
	return out + factor(scale)
}

func rate(name string, a *Answer) string { return "rate(" + name + selector(a) + rateWindow + ")" }

func selector(a *Answer) string { return selectors(a.Metric, a.Attributes) }

// selectors choose some of a metric's series.
func selectors(m *Metric, which schema.Map[string]) string {
	if len(which) == 0 {
		return ""
	}
	var out []string
	for _, e := range which {
		out = append(out, labelOf(m, e.Key)+"="+strconv.Quote(e.Value))
	}
	return "{" + strings.Join(out, ", ") + "}"
}

// labelOf finds the label of an attribute; one that is not there has been refused already.
func labelOf(m *Metric, key string) string {
	for _, x := range append(m.Scope.AllAttributes(), m.Attributes...) {
		if x.Key == key {
			return x.Label
		}
	}
	return key
}

// factor multiplies, or divides where that has the rounder number.
func factor(scale float64) string {
	switch whole := math.Round(1 / scale); {
	case scale == 0 || scale == 1:
		return ""
	case scale < 1 && math.Abs(1/scale-whole) < 1e-6*whole:
		return " / " + strconv.FormatFloat(whole, 'f', -1, 64)
	default:
		return " * " + strconv.FormatFloat(scale, 'f', -1, 64)
	}
}
