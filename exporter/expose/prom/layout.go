// Package prom serves snapshots to Prometheus, in text, OpenMetrics and protobuf. All formats are
// streamed from the snapshot.
package prom

import "github.com/gpumeter/gpumeter/exporter/expose"

// Format is a format of Prometheus.
type Format int

// The formats.
const (
	Text        Format = iota // text/plain; version=0.0.4
	OpenMetrics               // application/openmetrics-text; version=1.0.0
	Protobuf                  // delimited messages io.prometheus.client.MetricFamily
	formats                   // how many there are
)

// layout is what all pages of a format have in common. It never changes.
type layout struct {
	families *expose.Families
	format   Format
	heads    []string // by family: what precedes its first series
}

func newLayout(families *expose.Families, format Format) *layout {
	l := &layout{families: families, format: format}
	for _, d := range families.Descs {
		if format == Protobuf {
			l.heads = append(l.heads, protobufHead(d))
		} else {
			l.heads = append(l.heads, header(d, format))
		}
	}
	return l
}
