// Package fieldtable emits the tables that sources read by: the numbered fields of NVIDIA's driver,
// and the files of each source that reads files.
package fieldtable

import (
	_ "embed"
	"fmt"
	"slices"
	"text/template"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

const path = "exporter/source/nvml/zz_fields.go"

// Emitter writes the tables and the scales of all sources.
var Emitter = emit.Emitter{
	Name: "fieldtable",
	Doc:  "the driver's numbered fields, the files and the scales of calls, for the sources that read them",
	Owns: []string{path, "exporter/source/*/zz_table.go", "exporter/source/*/zz_scales.go"},
	Run:  run,
}

func run(m *resolve.Model) ([]emit.File, error) {
	fields, err := tableOf("nvml")(m)
	if err != nil {
		return nil, err
	}
	tables, err := files(m)
	if err != nil {
		return nil, err
	}
	factors, err := scales(m)
	return slices.Concat(fields, tables, factors), err
}

//go:embed fieldtable.go.tmpl
var text string

var templates = template.Must(template.New("").Option("missingkey=error").
	Funcs(template.FuncMap{"header": emit.Header}).Parse(text))

// table is the numbers of one scope.
type table struct {
	Name, Doc string
	Type      string // of what is read, in telemetry
	Entries   []entry
}

// entry is one line of a table: a number the driver is asked, and where the answer goes.
type entry struct {
	Metric      string // OpenTelemetry name
	ID, Part    uint32
	Link        string // Go constant, "" outside the scope link
	First, Last int    // major versions of the driver that know the number so; 0: no bound
	Scale       float64
	Unit        string
	Counter     bool
	Instead     bool     // of the entries before it for the same reading
	As          string   // Go function
	To          string   // Go expression below the struct
	States      []string // Go constants; To is then the array of states
	Other       string   // Go constant of the state other numbers mean, "" when they mean nothing
}

// tableOf returns what emits the fields that the source reads of whole devices and of their links.
func tableOf(source string) func(*resolve.Model) ([]emit.File, error) {
	return func(m *resolve.Model) ([]emit.File, error) {
		tables := []*table{
			{Name: "deviceFields", Doc: "the numbered fields of a device that the spec names, in its order", Type: "Device"},
			{Name: "linkFields", Doc: "those of a device's links", Type: "Link"},
		}
		for i, scope := range []string{"device", "link"} {
			for _, x := range m.Metrics {
				ref := x.Sources.Get(source)
				if ref == nil || x.Scope.Name != scope {
					continue
				}
				if err := tables[i].add(x, ref); err != nil {
					return nil, fmt.Errorf("%s: %w", x.Name, err)
				}
			}
		}
		file, err := emit.Go(templates, "table", path, tables)
		if err != nil {
			return nil, err
		}
		return []emit.File{file}, nil
	}
}

// add adds the entries of one metric, none when it is not read by number.
func (t *table) add(m *resolve.Metric, ref *schema.SourceRef) error {
	e := entry{Metric: m.Name, Scale: ref.Scale, Unit: m.Unit, Counter: m.Instrument == "counter", To: m.Group.GoName + "." + m.GoField}
	if e.Scale == 0 {
		e.Scale = 1
	}
	for _, id := range ref.States {
		e.States = append(e.States, m.Attributes[0].NameOfMember(id))
	}
	if len(e.States) > 0 {
		e.Other = m.Attributes[0].NameOfMember("unknown")
	}
	if err := t.addVersions(m, e, ref.Field); err != nil {
		return err
	}
	for _, f := range ref.Fields {
		member := e
		member.To += "[telemetry." + m.Attributes[0].NameOfMember(f.Key) + "]"
		if err := t.addVersions(m, member, f.Value); err != nil {
			return err
		}
	}
	return nil
}

// addVersions adds one entry per number.
func (t *table) addVersions(m *resolve.Metric, e entry, id schema.FieldID) error {
	for _, v := range id {
		var err error
		if e.First, e.Last, err = resolve.DriverRange(v.Driver); err != nil {
			return err
		}
		next := e
		next.ID, next.Part, next.As, next.Instead = v.ID, v.Part, v.As, v.Instead
		if v.Scale != 0 {
			next.Scale = v.Scale
		}
		if v.Link != "" {
			next.Link = m.Scope.Sort().NameOfMember(v.Link)
		}
		t.Entries = append(t.Entries, next)
	}
	return nil
}
