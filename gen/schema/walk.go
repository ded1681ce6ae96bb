package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gpumeter/gpumeter/spell"
)

// walker compares a document with the type it is meant to be, as strictly as the JSON schema an
// editor uses, so that both always agree.
type walker struct {
	file   string
	faults *Faults
}

func (w walker) bad(n *yaml.Node, format string, args ...any) {
	w.faults.Add(Pos{w.file, n.Line}, format, args...)
}

// check reports everything in n that t does not allow. The name is that of the key n stands
// under, and words are those allowed there, joined by commas; none means any.
func (w walker) check(n *yaml.Node, t reflect.Type, name, words string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	value, isMap := MapValue(t)
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		w.bad(n, "%s: the spec has no anchors or aliases; write it out", name)
	case n.ShortTag() == "!!null":
		w.bad(n, "%s: is empty", name)
	case t == reflect.TypeFor[FieldID]() && n.Kind == yaml.ScalarNode:
		w.scalar(n, reflect.TypeFor[uint32](), name, "")
	case isMap:
		if w.kind(n, yaml.MappingNode, name) {
			w.unique(n)
			for i := 0; i < len(n.Content); i += 2 {
				w.check(n.Content[i+1], value, n.Content[i].Value, "")
			}
		}
	case t.Kind() == reflect.Slice:
		if w.kind(n, yaml.SequenceNode, name) {
			w.list(n, t, name, words)
		}
	case t.Kind() == reflect.Struct:
		if w.kind(n, yaml.MappingNode, name) {
			w.unique(n)
			w.keys(n, t)
		}
	default:
		w.scalar(n, t, name, words)
	}
}

// list checks the entries of a list; texts must differ.
func (w walker) list(n *yaml.Node, t reflect.Type, name, words string) {
	seen := map[string]bool{}
	for _, c := range n.Content {
		w.check(c, t.Elem(), name, words)
		if t.Elem().Kind() != reflect.String || c.Kind != yaml.ScalarNode {
			continue
		}
		if seen[c.Value] {
			w.bad(c, "%s: %q is there twice", name, c.Value)
		}
		seen[c.Value] = true
	}
}

// MapValue returns the type of the values when t is a Map.
func MapValue(t reflect.Type) (reflect.Type, bool) {
	m, ok := reflect.TypeAssert[interface{ valueType() reflect.Type }](reflect.Zero(t))
	if !ok {
		return nil, false
	}
	return m.valueType(), true
}

// kind reports a node that is not of the wanted kind.
func (w walker) kind(n *yaml.Node, want yaml.Kind, name string) bool {
	if n.Kind != want {
		w.bad(n, "%s: wants %s, not %s", name, kindName(want), kindName(n.Kind))
	}
	return n.Kind == want
}

func kindName(k yaml.Kind) string {
	switch k {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return "a single value"
}

// scalar checks a single value.
func (w walker) scalar(n *yaml.Node, t reflect.Type, name, words string) {
	if !w.kind(n, yaml.ScalarNode, name) {
		return
	}
	list := strings.Split(words, ",")
	switch {
	case t.Kind() == reflect.String && n.ShortTag() != "!!str":
		w.bad(n, "%s: wants text; put %s in quotes", name, n.Value)
	case n.Decode(reflect.New(t).Interface()) != nil:
		w.bad(n, "%s: wants %s, not %q", name, scalarName(t), n.Value)
	case words != "" && !slices.Contains(list, n.Value):
		w.bad(n, "%s: %q is none of %s%s", name, n.Value, strings.Join(list, ", "), spell.Suggest(n.Value, list))
	}
}

func scalarName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	case reflect.Uint32:
		return "a whole number of at most 32 bits"
	}
	return "text"
}

// unique reports keys of a mapping that are no text, or there twice.
func (w walker) unique(n *yaml.Node) {
	first := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" || key.Anchor != "" {
			w.bad(key, "a key is text, without anchors or merging")
			continue
		}
		if line, twice := first[key.Value]; twice {
			w.bad(key, "key %q is there twice, first on line %d", key.Value, line)
			continue
		}
		first[key.Value] = key.Line
	}
}

// keys compares the keys of a mapping with the fields of a struct.
func (w walker) keys(n *yaml.Node, t reflect.Type) {
	fields := map[string]reflect.StructField{}
	var known []string
	for _, f := range Fields(t) {
		fields[Key(f)], known = f, append(known, Key(f))
	}
	have := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		f, ok := fields[key.Value]
		if !ok {
			if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!str" {
				w.bad(key, "unknown key %q%s", key.Value, spell.Suggest(key.Value, known))
			}
			continue
		}
		have[key.Value] = true
		w.check(value, f.Type, key.Value, f.Tag.Get("enum"))
		if Needed(f) && value.Kind == yaml.SequenceNode && len(value.Content) == 0 {
			w.bad(value, "%s: wants at least one", key.Value)
		}
	}
	for _, key := range known {
		if Needed(fields[key]) && !have[key] {
			w.bad(n, "%s: missing key %q", what(n, t), key)
		}
	}
}

// Fields lists the fields of a struct that are keys of its YAML, in order.
func Fields(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for _, f := range reflect.VisibleFields(t) {
		if key := Key(f); key != "" && key != "-" {
			out = append(out, f)
		}
	}
	return out
}

// Key is a field's key in the YAML.
func Key(f reflect.StructField) string { return f.Tag.Get("yaml") }

// Needed says whether the key must be there.
func Needed(f reflect.StructField) bool { return f.Tag.Get("need") == "true" }

// what names an entry by its first value, for messages about what it lacks.
func what(n *yaml.Node, t reflect.Type) string {
	if strings.HasSuffix(t.Name(), "File") {
		return "the file"
	}
	kind := strings.ToLower(t.Name())
	if len(n.Content) > 1 && n.Content[1].Kind == yaml.ScalarNode {
		return fmt.Sprintf("%s %s", kind, n.Content[1].Value)
	}
	return kind
}

// place writes file and line into every Pos of v, which was decoded from n.
func (w walker) place(n *yaml.Node, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	_, isMap := MapValue(v.Type())
	switch {
	case n.Kind == yaml.ScalarNode:
	case isMap:
		for i := range v.Len() {
			w.set(v.Index(i), n.Content[2*i].Line)
			w.place(n.Content[2*i+1], v.Index(i).FieldByName("Value"))
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			w.place(n.Content[i], v.Index(i))
		}
	case v.Kind() == reflect.Struct:
		w.set(v, n.Line)
		for i := 0; i < len(n.Content); i += 2 {
			for _, f := range Fields(v.Type()) {
				if Key(f) == n.Content[i].Value {
					w.place(n.Content[i+1], v.FieldByIndex(f.Index))
				}
			}
		}
	}
}

func (w walker) set(v reflect.Value, line int) {
	if f := v.FieldByName("Pos"); f.IsValid() {
		f.Set(reflect.ValueOf(Pos{w.file, line}))
	}
}
