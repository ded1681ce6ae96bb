// Package fieldtable emits the table of numbered driver fields that exporter/source/nvml reads.
package fieldtable

import (
	_ "embed"
	"fmt"
	"text/template"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

const path = "exporter/source/nvml/zz_fields.go"

// Emitter writes the table of source nvml.
var Emitter = emit.Emitter{
	Name: "fieldtable",
	Doc:  "the driver's numbered fields, for the source that reads them",
	Owns: path,
	Run:  tableOf("nvml"),
}

//go:embed fieldtable.go.tmpl
var text string

var templates = template.Must(template.New("").Option("missingkey=error").
	Funcs(template.FuncMap{"header": emit.Header}).Parse(text))

// entry is one line of the table: a number the driver is asked, and where the answer goes.
type entry struct {
	Metric      string // OpenTelemetry name
	ID          uint32
	First, Last int // major versions of the driver that know the number so; 0: no bound
	Scale       float64
	Unit        string
	Counter     bool
	To          string // Go expression below the device's struct
}

// tableOf returns what emits the fields that the source reads of whole devices.
func tableOf(source string) func(*resolve.Model) ([]emit.File, error) {
	return func(m *resolve.Model) ([]emit.File, error) {
		var entries []entry
		for _, x := range m.Metrics {
			ref := x.Sources.Get(source)
			if ref == nil || x.Scope.Name != "device" {
				continue
			}
			var err error
			if entries, err = appendMetric(entries, x, ref); err != nil {
				return nil, fmt.Errorf("%s: %w", x.Name, err)
			}
		}
		file, err := emit.Go(templates, "table", path, entries)
		if err != nil {
			return nil, err
		}
		return []emit.File{file}, nil
	}
}

// appendMetric adds the entries of one metric, none when it is not read by number.
func appendMetric(entries []entry, m *resolve.Metric, ref *schema.SourceRef) ([]entry, error) {
	e := entry{Metric: m.Name, Scale: ref.Scale, Unit: m.Unit, Counter: m.Instrument == "counter", To: m.Group.GoName + "." + m.GoField}
	if e.Scale == 0 {
		e.Scale = 1
	}
	entries, err := appendVersions(entries, e, ref.Field)
	for _, f := range ref.Fields {
		if err != nil {
			break
		}
		member := e
		member.To += "[telemetry." + memberName(m.Attributes[0], f.Key) + "]"
		entries, err = appendVersions(entries, member, f.Value)
	}
	return entries, err
}

// appendVersions adds one entry per range of driver versions.
func appendVersions(entries []entry, e entry, id schema.FieldID) ([]entry, error) {
	for _, v := range id {
		var err error
		if e.First, e.Last, err = resolve.DriverRange(v.Driver); err != nil {
			return nil, err
		}
		e.ID = v.ID
		entries = append(entries, e)
	}
	return entries, nil
}

// memberName is the Go constant of an enum's member, which the policies have found to exist.
func memberName(a *resolve.Attribute, id string) string {
	for i, m := range a.Members {
		if m.ID == id {
			return a.MemberName(i)
		}
	}
	return ""
}
