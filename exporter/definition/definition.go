// Package definition tells what a metric means, from the spec the binary carries.
package definition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// Write prints the definitions of the metrics that the names mean, in the order they are exposed:
// at length, or as JSON. Without a name the text is a list of all metrics and the JSON has all.
//
// A name is a metric's in OpenTelemetry or Prometheus, a group's, a glob over these, or what
// another exporter or OpenTelemetry itself calls one of ours. The folder spec is in root; the
// descriptions say which of its metrics there are, and their Prometheus names.
func Write(w io.Writer, root fs.FS, descs []*metric.Desc, names []string, format string) error {
	written, err := load(root)
	if err != nil {
		return err
	}
	all, err := written.define(descs)
	if err != nil {
		return err
	}
	found := all
	if len(names) > 0 {
		if found, err = find(all, names); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	switch {
	case format == "json":
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(found); err != nil {
			return fmt.Errorf("definitions as JSON: %w", err)
		}
	case format != "text":
		return fmt.Errorf("format %q is neither text nor json", format)
	case len(names) == 0:
		written.overview(&b, found)
	default:
		text(&b, found)
	}
	_, err = w.Write(b.Bytes())
	return err
}

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
