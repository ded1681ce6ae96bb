// Package jsonschema emits the schemas by which an editor completes and checks the YAML under spec/.
package jsonschema

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

// Emitter writes one schema per sort of file.
var Emitter = emit.Emitter{
	Name: "jsonschema",
	Doc:  "schemas by which an editor completes and checks the spec",
	Owns: []string{"spec/schema/*.json"},
	Run:  run,
}

// The draft the common editors know best.
const draft = "http://json-schema.org/draft-07/schema#"

func run(m *resolve.Model) ([]emit.File, error) {
	var files []emit.File
	for _, f := range []struct {
		name, title, from string
		shape             reflect.Type
	}{
		{"metrics", "A group of metrics", "gen/schema and spec", reflect.TypeFor[schema.Group]()},
		{"attributes", "All attributes", "gen/schema", reflect.TypeFor[schema.AttributeFile]()},
		{"scopes", "All scopes", "gen/schema and spec", reflect.TypeFor[schema.ScopeFile]()},
		{"sources", "All sources", "gen/schema", reflect.TypeFor[schema.SourceFile]()},
		{"compat", "Answers to another exporter's names", "gen/schema and spec", reflect.TypeFor[schema.Compat]()},
		{"rules", "A PrometheusRule object", "gen/schema", reflect.TypeFor[schema.RuleFile]()},
		{"vocabulary", "What all dashboards share", "gen/schema", reflect.TypeFor[schema.Vocabulary]()},
		{"dashboards", "A dashboard", "gen/schema", reflect.TypeFor[schema.Dashboard]()},
		{"xids", "The meanings of NVIDIA's XID errors", "gen/schema and spec", reflect.TypeFor[schema.XIDFile]()},
		{"health", "What the health score is made of", "gen/schema and spec", reflect.TypeFor[schema.HealthFile]()},
	} {
		root := builder{m}.of(f.shape)
		root.Schema, root.Title, root.Comment = draft, f.title, emit.Header(f.from)
		path := "spec/schema/" + f.name + ".json"
		data, err := marshal(root, "  ")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, emit.File{Path: path, Data: data})
	}
	return files, nil
}

// builder makes schemas of types, with the words the model knows.
type builder struct{ model *resolve.Model }

// of is the schema of a type.
func (b builder) of(t reflect.Type) *node {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[schema.FieldID]() {
		return &node{AnyOf: []*node{b.of(reflect.TypeFor[uint32]()), b.list(t)}}
	}
	if value, ok := schema.MapValue(t); ok {
		return &node{Type: "object", AdditionalProperties: b.of(value)}
	}
	switch t.Kind() {
	case reflect.Struct:
		return b.object(t)
	case reflect.Slice:
		return b.list(t)
	case reflect.Bool:
		return &node{Type: "boolean"}
	case reflect.Float64:
		return &node{Type: "number"}
	case reflect.Uint32:
		return &node{Type: "integer", Minimum: new(int64(0)), Maximum: new(int64(math.MaxUint32))}
	}
	return &node{Type: "string"}
}

func (b builder) list(t reflect.Type) *node {
	items := b.of(t.Elem())
	return &node{Type: "array", Items: items, UniqueItems: items.Type == "string"}
}

// object is the schema of a struct: its keys, and no others.
func (b builder) object(t reflect.Type) *node {
	n := &node{Type: "object", AdditionalProperties: false}
	for _, f := range schema.Fields(t) {
		key := schema.Key(f)
		x := b.known(t, key)
		if x == nil {
			x = b.of(f.Type)
		}
		if words := f.Tag.Get("enum"); words != "" {
			x.words().Enum = strings.Split(words, ",")
		}
		x.Description = f.Tag.Get("doc")
		if schema.Needed(f) {
			n.Required = append(n.Required, key)
			if x.Type == "array" {
				x.MinItems = 1
			}
		}
		n.Properties = append(n.Properties, property{key, x})
	}
	return n
}

// words is where an enumeration belongs: in the items of a list.
func (n *node) words() *node {
	if n.Items != nil {
		return n.Items
	}
	return n
}

// known is the schema of a key whose words the model lists, or nil.
func (b builder) known(t reflect.Type, key string) *node {
	switch t.Name() + "." + key {
	case "Metric.attributes", "Scope.attributes":
		words := &node{Type: "string"}
		for _, a := range b.model.Attributes {
			words.add(a.Key, a.Brief)
		}
		return &node{Type: "array", Items: words, UniqueItems: true}
	case "Answer.metric", "Reading.metric", "Reading.below":
		return b.metrics()
	case "Answer.from":
		return &node{Type: "array", Items: b.metrics(), UniqueItems: true}
	case "Answer.attribute":
		n := &node{Type: "string"}
		for _, a := range b.model.Attributes {
			n.Enum = append(n.Enum, a.Key)
		}
		return n
	case "XID.action":
		return b.actions()
	case "Term.term":
		return b.terms()
	case "Group.scopes":
		words := &node{Type: "string"}
		for _, s := range b.model.Scopes {
			words.add(s.Name, s.Brief)
		}
		return &node{Type: "array", Items: words, UniqueItems: true}
	case "Metric.unit":
		return &node{Type: "string", AnyOf: []*node{{Enum: resolve.Units()}, {Pattern: resolve.CountedUnit}}}
	case "Metric.sources":
		return b.sources()
	}
	return nil
}

// metrics are the names of all metrics. Their meanings would make most of the file.
func (b builder) metrics() *node {
	n := &node{Type: "string"}
	for _, m := range b.model.Metrics {
		n.Enum = append(n.Enum, m.Name)
	}
	return n
}

// actions are the classes of the catalogue of XIDs.
func (b builder) actions() *node {
	n := &node{Type: "string"}
	if b.model.XIDs != nil {
		for _, m := range b.model.XIDs.Action.Members {
			n.add(m.ID, m.Brief)
		}
	}
	return n
}

// terms are those of the health score.
func (b builder) terms() *node {
	n := &node{Type: "string"}
	if b.model.Health != nil {
		for _, m := range b.model.Health.Attribute.Members {
			n.add(m.ID, m.Brief)
		}
	}
	return n
}

// sources is a mapping whose keys are the sources there are, each with the keys it takes.
func (b builder) sources() *node {
	n := &node{Type: "object", AdditionalProperties: false}
	for _, s := range b.model.Sources {
		ref := b.of(reflect.TypeFor[schema.SourceRef]())
		ref.Description = s.Brief
		ref.Properties = slices.DeleteFunc(ref.Properties, func(p property) bool {
			return slices.Contains(schema.Locators(), p.key) && !slices.Contains(s.Keys, p.key)
		})
		n.Properties = append(n.Properties, property{s.Name, ref})
	}
	return n
}

// add allows a word and says what it means.
func (n *node) add(word, meaning string) {
	n.Enum, n.EnumDescriptions = append(n.Enum, word), append(n.EnumDescriptions, meaning)
}
