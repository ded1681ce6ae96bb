// Package definition explains metrics, alerts and XID errors, from the files that the binary carries.
package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// Sources are what is explained.
type Sources struct {
	Spec    fs.FS          // with the folder spec
	Rules   fs.FS          // with the folder rules/plain
	Metrics []*metric.Desc // which metrics of the spec there are, and their Prometheus names
}

// Write prints what the names mean: metrics in the order they are exposed, then XID errors, then
// alerts; at length, or as JSON. Without a name the text is a list of all metrics and the JSON has
// all metrics.
//
// A name is a metric's in OpenTelemetry or Prometheus, a group's, a prefix of metrics, a glob over
// these, or what another exporter or OpenTelemetry itself calls one of ours; the code of an XID
// error; or the name of an alert.
func Write(w io.Writer, from Sources, names []string, format string) error {
	written, err := load(from.Spec)
	if err != nil {
		return err
	}
	all, err := written.define(from.Metrics)
	if err != nil {
		return err
	}
	found := &result{metrics: all}
	if len(names) > 0 {
		x := index{spec: written, metrics: all, rules: from.Rules, root: from.Spec}
		if found, err = x.find(names); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	switch {
	case format == "json":
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(found.list()); err != nil {
			return fmt.Errorf("definitions as JSON: %w", err)
		}
	case format != "text":
		return fmt.Errorf("format %q is neither text nor json", format)
	case len(names) == 0:
		written.overview(&b, all)
	default:
		found.text(&b)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// result is what the names mean.
type result struct {
	metrics []definition
	xids    []xid
	alerts  []alert
}

// list has all that was found.
func (f *result) list() []any {
	out := []any{}
	for _, d := range f.metrics {
		out = append(out, d)
	}
	for _, x := range f.xids {
		out = append(out, x)
	}
	for _, a := range f.alerts {
		out = append(out, a)
	}
	return out
}

// text writes all that was found, at length.
func (f *result) text(b *bytes.Buffer) {
	text(b, f.metrics)
	for _, x := range f.xids {
		separate(b)
		x.text(b)
	}
	for _, a := range f.alerts {
		separate(b)
		a.text(b)
	}
}

// separate puts an empty line between two explanations.
func separate(b *bytes.Buffer) {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
}

// ErrName says that a name means nothing, which is a fault of the command line.
var ErrName = errors.New("unknown name")

// definition is what the spec says of one metric, with nothing left to look up.
type definition struct {
	Prometheus    string      `json:"prometheus"`
	OpenTelemetry string      `json:"opentelemetry"`
	Type          string      `json:"type"`       // Prometheus'
	Instrument    string      `json:"instrument"` // OpenTelemetry's
	Unit          string      `json:"unit"`
	Brief         string      `json:"brief"`
	Note          string      `json:"note,omitempty"`
	Group         string      `json:"group"`
	Scope         string      `json:"scope"`
	Stability     string      `json:"stability"`
	Enabled       string      `json:"enabled"`
	Deprecated    *deprecated `json:"deprecated,omitempty"`
	Labels        []label     `json:"labels"`
	Buckets       []float64   `json:"buckets,omitempty"`
	Foreign       bool        `json:"foreign_buckets,omitempty"`
	Sources       []source    `json:"sources"`
	Twin          *twin       `json:"twin,omitempty"`
	Elsewhere     []elsewhere `json:"elsewhere"`
}

type label struct {
	Name       string      `json:"name"`
	Attribute  string      `json:"attribute"`
	Type       string      `json:"type"`
	Brief      string      `json:"brief"`
	Note       string      `json:"note,omitempty"`
	From       string      `json:"from,omitempty"`
	Members    []member    `json:"members,omitempty"`
	Deprecated *deprecated `json:"deprecated,omitempty"`
}

type source struct {
	Name  string         `json:"name"`
	Where map[string]any `json:"where,omitempty"`
	Scale float64        `json:"scale,omitempty"`
	Note  string         `json:"note,omitempty"`

	where string // the same for people
}
