// Package schema is the shape of the YAML under spec/, and nothing more.
//
// Each field's doc tag is the text an editor shows for the key; need:"true" marks a required key,
// and enum lists the words allowed.
package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Pos is where something was written. It is set by Load on every struct that embeds it.
type Pos struct {
	File string // relative to the repository root
	Line int
}

// String returns file:line, or the file alone where no line is meant.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Spec is everything under spec/, as written.
type Spec struct {
	Scopes     []Scope
	Sources    []Source
	Attributes []Attribute
	Groups     []Group
	Compats    []Compat
	XIDs       *XIDFile    // nil: there is no such table
	Health     *HealthFile // the same
	Rules      []RuleFile
	Vocabulary Vocabulary // of the dashboards
	Dashboards []Dashboard
}

// ScopeFile is spec/scopes.yaml.
type ScopeFile struct {
	Scopes []Scope `yaml:"scopes" need:"true" doc:"The sorts of things metrics are about, in the order they are exposed."`
}

// Scope is a sort of thing metrics are about.
type Scope struct {
	Pos        `yaml:"-"`
	Name       string   `yaml:"name" need:"true" doc:"One lower-case word."`
	Brief      string   `yaml:"brief" need:"true" doc:"One sentence: what the thing is."`
	Prefixes   []string `yaml:"prefixes" need:"true" doc:"What the OpenTelemetry names of its metrics start with, without the dot."`
	Within     string   `yaml:"within" doc:"The scope these things are parts of; their series carry its attributes first."`
	Attributes []string `yaml:"attributes" doc:"Attributes every series of the scope carries, in label order."`
}

// SourceFile is spec/sources.yaml.
type SourceFile struct {
	Sources []Source `yaml:"sources" need:"true" doc:"Everything that can read a metric."`
}

// Source is something that can read metrics.
type Source struct {
	Pos   `yaml:"-"`
	Name  string   `yaml:"name" need:"true" doc:"As written under sources: of a metric; the name of its folder."`
	Brief string   `yaml:"brief" need:"true" doc:"One sentence: what it reads and through what."`
	Keys  []string `yaml:"keys" enum:"call,event,field,fields,file,column,metric" doc:"The keys a metric may use to say where the source finds it."`
}

// AttributeFile is spec/attributes.yaml.
type AttributeFile struct {
	Attributes []Attribute `yaml:"attributes" need:"true" doc:"Every label once."`
}

// Attribute is one label.
type Attribute struct {
	Pos         `yaml:"-"`
	Key         string      `yaml:"key" need:"true" doc:"OpenTelemetry name of the attribute; dots become underscores in the label."`
	Brief       string      `yaml:"brief" need:"true" doc:"One sentence: what it means."`
	Note        string      `yaml:"note" doc:"More than one sentence, where needed."`
	Type        string      `yaml:"type" need:"true" enum:"string,int,enum" doc:"enum attributes list their members."`
	Members     []Member    `yaml:"members" doc:"The values of an enum, in the order they are exposed."`
	From        string      `yaml:"from" need:"true" doc:"Where the value comes from."`
	Cardinality string      `yaml:"cardinality" need:"true" enum:"fixed,node,device,workload,open" doc:"How many values there can be: fixed by the spec, by the node's hardware, one a device, one a workload, or as many as events bring."`
	Additive    *bool       `yaml:"additive" doc:"false when a sum over the values means nothing; rules and panels that sum over it are refused. Default true."`
	Examples    []string    `yaml:"examples" doc:"Values seen in the field."`
	Stability   string      `yaml:"stability" enum:"development,stable" doc:"Default development."`
	Deprecated  *Deprecated `yaml:"deprecated" doc:"Present when it must no longer be used."`
}

// Member is one value of an enum attribute.
type Member struct {
	Pos   `yaml:"-"`
	ID    string `yaml:"id" need:"true" doc:"The value, lower-case words joined by underscores."`
	Brief string `yaml:"brief" need:"true" doc:"One sentence: what it means."`
}

// Group is one file of spec/metrics.
type Group struct {
	Pos     `yaml:"-"`
	Group   string   `yaml:"group" need:"true" doc:"Name of the group, the same as the file's."`
	Scopes  []string `yaml:"scopes" need:"true" doc:"What the numbers are of. With several, names are written for the first, and the others put their own prefix."`
	Brief   string   `yaml:"brief" need:"true" doc:"One sentence: what the group is about."`
	Note    string   `yaml:"note" doc:"More than one sentence, where needed."`
	Metrics []Metric `yaml:"metrics" need:"true" doc:"The metrics, in the order they are exposed."`
}

// Metric is one thing that can be measured.
type Metric struct {
	Pos            `yaml:"-"`
	Name           string         `yaml:"name" need:"true" doc:"OpenTelemetry name; the Prometheus name is made from it."`
	Brief          string         `yaml:"brief" need:"true" doc:"One sentence, the HELP text."`
	Note           string         `yaml:"note" doc:"More than one sentence, where needed."`
	Instrument     string         `yaml:"instrument" need:"true" enum:"gauge,counter,updowncounter,histogram" doc:"What sort of number it is."`
	Unit           string         `yaml:"unit" need:"true" doc:"UCUM, base units only; \"1\" for a ratio of 0 to 1, \"\" for a state or info, {thing} for a count."`
	Stability      string         `yaml:"stability" enum:"development,stable" doc:"Default development."`
	Enabled        string         `yaml:"enabled" enum:"default,opt-in" doc:"opt-in metrics are off unless included. Default default."`
	Attributes     []string       `yaml:"attributes" doc:"Keys of attributes.yaml beyond those of the scope, in label order."`
	Buckets        []float64      `yaml:"buckets" doc:"Upper bounds of a histogram: rising, never whole, from 1e-4 to below 1e6."`
	ForeignBuckets bool           `yaml:"foreign_buckets" doc:"The source's own buckets are passed on unchanged."`
	Sources        Map[SourceRef] `yaml:"sources" need:"true" doc:"Who reads it and where; the first that answers wins. Empty while nobody reads it: a source is written in the commit that reads."`
	Semconv        *Twin          `yaml:"semconv" doc:"The official OpenTelemetry metric of the same meaning."`
	Was            []Was          `yaml:"was" doc:"What other exporters call it."`
	Deprecated     *Deprecated    `yaml:"deprecated" doc:"Present when it must no longer be used."`
}

// SourceRef says where a source finds a metric.
type SourceRef struct {
	Call   string       `yaml:"call" doc:"The driver's function; read by one line of the source."`
	Event  string       `yaml:"event" doc:"The driver's event; counted by the source."`
	Field  FieldID      `yaml:"field" doc:"A numbered field of the driver; needs no code."`
	Fields Map[FieldID] `yaml:"fields" doc:"Numbered fields by value of the metric's enum attribute; needs no code. A call beside them reads the values left out."`
	File   string       `yaml:"file" doc:"A path below the device's directory; needs no code."`
	Column string       `yaml:"column" doc:"A column of the tool's output; needs no code."`
	Metric string       `yaml:"metric" doc:"A foreign metric's name; needs no code."`
	States []string     `yaml:"states" doc:"What the numbers 0, 1, 2 … of a field mean: members of the metric's enum attribute, of which the one that holds is 1. Other numbers are the member unknown."`
	Scale  float64      `yaml:"scale" doc:"Multiplies the raw number into the spec's unit. Default 1."`
	Note   string       `yaml:"note" doc:"What the reader should know: generations, windows, limits."`
}

// Locators lists the keys of a SourceRef that say where, as a source's keys may hold them.
func Locators() []string {
	f, _ := reflect.TypeFor[Source]().FieldByName("Keys")
	return strings.Split(f.Tag.Get("enum"), ",")
}

// Where names the locators that are set, in the order of the struct.
func (r SourceRef) Where() []string {
	var keys []string
	v := reflect.ValueOf(r)
	for _, f := range Fields(v.Type()) {
		if x := v.FieldByIndex(f.Index); slices.Contains(Locators(), Key(f)) && x.Len() > 0 { // texts and lists
			keys = append(keys, Key(f))
		}
	}
	return keys
}

// FieldID is a field's number, which may differ by driver version and by sort of link.
// It is written as a number, or as a list.
type FieldID []FieldVersion

// FieldVersion is a field's number in a range of driver versions.
type FieldVersion struct {
	Driver  string  `yaml:"driver" doc:"Major versions: \"575-589\", \">=590\", \"<575\"; empty for all."`
	Link    string  `yaml:"link" doc:"The sort of link that has it: a member of gpu.link.type. Needed in the scope link."`
	ID      uint32  `yaml:"id" need:"true" doc:"The number."`
	Part    uint32  `yaml:"part" doc:"Which part of the device is meant, where the driver numbers parts. Default 0."`
	Scale   float64 `yaml:"scale" doc:"Multiplies the raw number, in place of the metric's scale."`
	As      string  `yaml:"as" doc:"The function of the source that makes sense of the raw number, where it is not plain."`
	Instead bool    `yaml:"instead" doc:"Taken where the device does not know the numbers before it."`
}

// Twin is an official metric of the same meaning.
type Twin struct {
	Pos        `yaml:"-"`
	Name       string      `yaml:"name" need:"true" doc:"Its OpenTelemetry name."`
	Attributes Map[string] `yaml:"attributes" doc:"Attributes it requires beyond ours, and their values here."`
}

// Was is what another exporter calls a metric.
type Was struct {
	Pos    `yaml:"-"`
	System string `yaml:"system" need:"true" enum:"dcgm,l9gpu,nvidia_gpu_exporter,amd,gpud,ingero" doc:"The other exporter."`
	Name   string `yaml:"name" need:"true" doc:"Its name there."`
	Note   string `yaml:"note" doc:"How its meaning or unit differs."`
}

// Deprecated says since when and in favour of what.
type Deprecated struct {
	Pos        `yaml:"-"`
	Since      string `yaml:"since" need:"true" doc:"The first version that said so."`
	RenamedTo  string `yaml:"renamed_to" doc:"What to use now."`
	Explaining string `yaml:"note" doc:"Why."`
}
