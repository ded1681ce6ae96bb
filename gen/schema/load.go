package schema

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gpumeter/gpumeter/spell"
)

// Load reads the spec below root, metric groups in name order. Unknown keys, missing keys and
// values of the wrong type are all reported at once, with file and line.
func Load(root fs.FS) (*Spec, error) {
	var (
		faults     Faults
		spec       Spec
		scopes     ScopeFile
		sources    SourceFile
		attributes AttributeFile
	)
	read(root, "scopes.yaml", &scopes, &faults)
	read(root, "sources.yaml", &sources, &faults)
	read(root, "attributes.yaml", &attributes, &faults)
	spec.Scopes, spec.Sources, spec.Attributes = scopes.Scopes, sources.Sources, attributes.Attributes
	names, err := fs.Glob(root, "metrics/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		var g Group
		read(root, name, &g, &faults)
		if want := strings.TrimSuffix(path.Base(name), ".yaml"); g.Group != want {
			faults.Add(g.Pos, "group %q stands in %s.yaml; they must agree", g.Group, want)
		}
		spec.Groups = append(spec.Groups, g)
	}
	return &spec, faults.Err()
}

// read decodes one file into what v points to.
func read(root fs.FS, name string, v any, faults *Faults) {
	file := path.Join("spec", name)
	raw, err := fs.ReadFile(root, name)
	if err != nil {
		faults.Add(Pos{file, 0}, "%v", err)
		return
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		faultsOf(file, err, faults)
		return
	}
	if len(doc.Content) == 0 {
		faults.Add(Pos{file, 1}, "empty")
		return
	}
	w := walker{file, faults}
	before := len(*faults)
	w.walk(doc.Content[0], reflect.TypeOf(v).Elem())
	if err := doc.Decode(v); err != nil {
		faultsOf(file, err, faults)
	}
	if len(*faults) == before {
		w.place(doc.Content[0], reflect.ValueOf(v).Elem())
	}
}

var lineOf = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)

// faultsOf takes the lines out of the decoder's errors.
func faultsOf(file string, err error, faults *Faults) {
	texts := []string{err.Error()}
	var many *yaml.TypeError
	if errors.As(err, &many) {
		texts = many.Errors
	}
	for _, t := range texts {
		at := Pos{file, 1}
		if m := lineOf.FindStringSubmatch(t); m != nil {
			at.Line, _ = strconv.Atoi(m[1])
			t = m[2]
		}
		faults.Add(at, "%s", t)
	}
}

// walker compares a document with the type it is meant to be.
type walker struct {
	file   string
	faults *Faults
}

// walk reports the keys of n that t does not have, and those it needs that n lacks.
func (w walker) walk(n *yaml.Node, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Slice: // a Map
		value, _ := t.Elem().FieldByName("Value")
		for i := 1; i < len(n.Content); i += 2 {
			w.walk(n.Content[i], value.Type)
		}
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		for _, c := range n.Content {
			w.walk(c, t.Elem())
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct:
		w.keys(n, t)
	}
}

func (w walker) keys(n *yaml.Node, t reflect.Type) {
	fields := map[string]reflect.StructField{}
	var known []string
	for _, f := range reflect.VisibleFields(t) {
		if key := f.Tag.Get("yaml"); key != "" && key != "-" {
			fields[key], known = f, append(known, key)
		}
	}
	have := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		have[key.Value] = true
		f, ok := fields[key.Value]
		if !ok {
			w.faults.Add(Pos{w.file, key.Line}, "unknown key %q%s", key.Value, spell.Suggest(key.Value, known))
			continue
		}
		if words := f.Tag.Get("enum"); words != "" && value.Kind == yaml.ScalarNode {
			if list := strings.Split(words, ","); !slices.Contains(list, value.Value) {
				w.faults.Add(Pos{w.file, value.Line}, "%s: %q is none of %s%s", key.Value, value.Value,
					strings.Join(list, ", "), spell.Suggest(value.Value, list))
			}
		}
		w.walk(value, f.Type)
	}
	for _, key := range known {
		if fields[key].Tag.Get("need") == "true" && !have[key] {
			w.faults.Add(Pos{w.file, n.Line}, "%s: missing %q", what(n, t), key)
		}
	}
}

// what names an entry by its first scalar, for messages about what it lacks.
func what(n *yaml.Node, t reflect.Type) string {
	kind := strings.ToLower(t.Name())
	if len(n.Content) > 1 && n.Content[1].Kind == yaml.ScalarNode {
		return fmt.Sprintf("%s %s", kind, n.Content[1].Value)
	}
	return kind
}

// place writes file and line into every Pos of v.
func (w walker) place(n *yaml.Node, v reflect.Value) {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case n.Kind == yaml.MappingNode && v.Kind() == reflect.Slice: // a Map
		for i := range v.Len() {
			w.set(v.Index(i), n.Content[2*i].Line)
			w.place(n.Content[2*i+1], v.Index(i).FieldByName("Value"))
		}
	case n.Kind == yaml.SequenceNode && v.Kind() == reflect.Slice:
		for i := range v.Len() {
			w.place(n.Content[i], v.Index(i))
		}
	case n.Kind == yaml.MappingNode && v.Kind() == reflect.Struct:
		w.set(v, n.Line)
		for i := 0; i < len(n.Content); i += 2 {
			for _, f := range reflect.VisibleFields(v.Type()) {
				if f.Tag.Get("yaml") == n.Content[i].Value {
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
