package schema

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Compat is one file of spec/compat: another exporter, and an answer to every name of it.
type Compat struct {
	Pos      `yaml:"-"`
	System   string       `yaml:"system" need:"true" enum:"dcgm,l9gpu,nvidia_gpu_exporter,amd,gpud,ingero" doc:"The other exporter, the same as the file's name."`
	Title    string       `yaml:"title" need:"true" doc:"What it is called."`
	Brief    string       `yaml:"brief" need:"true" doc:"One sentence: what one who comes from there should know first."`
	Note     string       `yaml:"note" doc:"More than one sentence, where needed."`
	Names    string       `yaml:"names" need:"true" enum:"otel,prometheus" doc:"How its names are written below: in OpenTelemetry, or as Prometheus has them."`
	Rules    *CompatRules `yaml:"rules" doc:"Have recording rules made that give its names and labels from ours; none when left out."`
	Dialects []Dialect    `yaml:"dialects" need:"true" doc:"The sets of names it has or had; the first is meant where none is said."`
	Labels   []Answer     `yaml:"labels" doc:"Answers to the labels that most of its series bear."`
	Sections []Section    `yaml:"sections" need:"true" doc:"Its fields, in groups as they are there."`
}

// Dialect is a set of names another exporter has or had.
type Dialect struct {
	Pos   `yaml:"-"`
	Name  string `yaml:"name" need:"true" doc:"One word, such as a version."`
	Brief string `yaml:"brief" need:"true" doc:"One sentence: where it is met."`
}

// CompatRules say where its labels come from.
type CompatRules struct {
	Pos     `yaml:"-"`
	Devices string      `yaml:"devices" need:"true" doc:"The info metric of a device."`
	Parts   string      `yaml:"parts" doc:"The info metric of a device's part, where it tells of parts."`
	Owners  string      `yaml:"owners" need:"true" doc:"The info metric of who holds a device."`
	Only    Map[string] `yaml:"only" doc:"The devices it reads, by attributes of the info metric; all when left out."`
}

// Section is a group of another exporter's fields.
type Section struct {
	Pos     `yaml:"-"`
	Name    string      `yaml:"name" need:"true" doc:"What the group is called there."`
	Brief   string      `yaml:"brief" need:"true" doc:"One sentence: what the group is."`
	Note    string      `yaml:"note" doc:"More than one sentence, where needed."`
	Only    Map[string] `yaml:"only" doc:"What the group is about, by attributes of our metrics that have them: devices of a vendor, or an engine."`
	Answers []Answer    `yaml:"answers" doc:"One answer for each field, or for several that have the same."`
	Rest    *Rest       `yaml:"rest" doc:"The answer to every field of the group that has none above."`
}

// Answer is what we have for a field of another exporter: exactly one of metric, rule, attribute,
// label, planned and none.
type Answer struct {
	Pos        `yaml:"-"`
	Fields     []string    `yaml:"fields" doc:"The fields in its source, where they differ from the names it exposes."`
	There      []Foreign   `yaml:"there" doc:"The names it exposes; left out when it exposes none."`
	Metric     string      `yaml:"metric" doc:"Our metric."`
	Attributes Map[string] `yaml:"attributes" doc:"Which series of the metric."`
	As         string      `yaml:"as" enum:"rate,mean,p50,p95,p99,differs" doc:"What of the metric gives their number; differs when nothing does, and the note says why. Default the value."`
	Over       []string    `yaml:"over" doc:"Attributes of the metric to sum over."`
	Rule       string      `yaml:"rule" doc:"A recording rule of spec/rules, level:metric:operation."`
	From       []string    `yaml:"from" doc:"The metrics the rule is made from."`
	Attribute  string      `yaml:"attribute" doc:"Our attribute."`
	Label      string      `yaml:"label" enum:"instance,node,cluster" doc:"A label that Prometheus puts on our series."`
	Planned    string      `yaml:"planned" doc:"One sentence: what is to come."`
	None       string      `yaml:"none" doc:"One sentence: why not."`
	Note       string      `yaml:"note" doc:"How the meaning differs."`
}

// Foreign is a name another exporter exposes.
type Foreign struct {
	Pos        `yaml:"-"`
	Dialect    string      `yaml:"dialect" doc:"Default the first."`
	Name       string      `yaml:"name" need:"true" doc:"As it stands there."`
	Type       string      `yaml:"type" enum:"gauge,counter,label" doc:"Default gauge; label among labels."`
	Unit       string      `yaml:"unit" doc:"The unit as it is said there."`
	Attributes Map[string] `yaml:"attributes" doc:"Which series of that name."`
	Scale      float64     `yaml:"scale" doc:"Their number is ours times this. Default 1."`
	After      string      `yaml:"after" doc:"Of a label: another attribute of ours that of sees before it, with a slash between them."`
	Of         string      `yaml:"of" doc:"Of a label: the part of ours it has, an expression with a group. Default all."`
	Format     string      `yaml:"format" doc:"Of a label: what it makes of that part, such as nvidia$1. Default $1."`
}

// Rest is an answer to many fields at once.
type Rest struct {
	Pos     `yaml:"-"`
	Planned string `yaml:"planned" doc:"One sentence: what is to come."`
	None    string `yaml:"none" doc:"One sentence: why not."`
	Note    string `yaml:"note" doc:"What to use instead."`
}

// loadCompat reads what spec/compat holds; it may be missing.
func loadCompat(root fs.FS, faults *Faults) []Compat {
	var out []Compat
	entries, err := fs.ReadDir(root, "compat")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		faults.Add(Pos{File: "spec/compat"}, "cannot be read: %v", err)
	}
	for _, entry := range entries {
		name := path.Join("compat", entry.Name())
		word, ok := strings.CutSuffix(entry.Name(), ".yaml")
		if !ok || entry.IsDir() {
			faults.Add(Pos{File: path.Join("spec", name)}, "only files named <system>.yaml belong here")
			continue
		}
		var c Compat
		if !read(root, name, &c, faults) {
			continue
		}
		if c.System != word {
			faults.Add(c.Pos, "system %q stands in %s.yaml; they must agree", c.System, word)
		}
		out = append(out, c)
	}
	return out
}
