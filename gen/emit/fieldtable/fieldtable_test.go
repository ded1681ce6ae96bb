package fieldtable

import (
	"testing"

	"github.com/gpumeter/gpumeter/gen/gentest"
	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

// The sample's driver has a field, fields beside a call, and numbers that moved.
func TestGolden(t *testing.T) {
	e := Emitter
	e.Run = tableOf("driver")
	gentest.Golden(t, e, "testdata/sample.txtar")
}

// The sample's tool has a file.
func TestFilesGolden(t *testing.T) {
	e := Emitter
	e.Run = files
	gentest.Golden(t, e, "testdata/files.txtar")
}

// The sample's driver has calls with a scale; a scale beside numbered fields is not of a call.
func TestScalesGolden(t *testing.T) {
	e := Emitter
	e.Run = scales
	gentest.Golden(t, e, "testdata/scales.txtar")
}

// A file that gives no single number, nor one for each member of an enum, is refused.
func TestFileOfOpenAttributes(t *testing.T) {
	m := &resolve.Metric{GoField: "Speed", Group: &resolve.Group{GoName: "Fan"}}
	m.Scope = &resolve.Scope{Scope: schema.Scope{Name: "device"}, GoName: "Device"}
	m.Sources = schema.Map[schema.SourceRef]{{Key: "tool", Value: schema.SourceRef{File: "fans"}}}
	if got, err := files(&resolve.Model{Metrics: []*resolve.Metric{m}}); err != nil || len(got) != 1 {
		t.Errorf("one number: %d files, %v", len(got), err)
	}
	m.Attributes = []*resolve.Attribute{{Attribute: schema.Attribute{Type: "int"}}}
	if got, err := files(&resolve.Model{Metrics: []*resolve.Metric{m}}); err == nil {
		t.Errorf("emitted %s", got[0].Data)
	}
}

// A range the policies let through by mistake is refused, not left out.
func TestBadRange(t *testing.T) {
	m := new(resolve.Metric)
	m.Scope, m.Group = &resolve.Scope{Scope: schema.Scope{Name: "device"}}, new(resolve.Group)
	m.Sources = schema.Map[schema.SourceRef]{{Key: "nvml", Value: schema.SourceRef{Field: schema.FieldID{{Driver: "570", ID: 1}}}}}
	if files, err := Emitter.Run(&resolve.Model{Metrics: []*resolve.Metric{m}}); err == nil {
		t.Errorf("emitted %s", files[0].Data)
	}
}
