package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
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
	entries, err := fs.ReadDir(root, "metrics")
	if err != nil {
		faults.Add(Pos{File: "spec/metrics"}, "cannot be read: %v", err)
	}
	for _, entry := range entries {
		name := path.Join("metrics", entry.Name())
		word, ok := strings.CutSuffix(entry.Name(), ".yaml")
		if !ok || entry.IsDir() {
			faults.Add(Pos{File: path.Join("spec", name)}, "only files named <group>.yaml belong here")
			continue
		}
		var g Group
		if !read(root, name, &g, &faults) {
			continue
		}
		if g.Group != word {
			faults.Add(g.Pos, "group %q stands in %s.yaml; they must agree", g.Group, word)
		}
		spec.Groups = append(spec.Groups, g)
	}
	spec.Compats = loadCompat(root, &faults)
	spec.Rules = loadRules(root, &faults)
	loadDashboards(root, &spec, &faults)
	loadData(root, &spec, &faults)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return &spec, nil
}

// read decodes one file into what v points to, and says whether it was without fault.
func read(root fs.FS, name string, v any, faults *Faults) bool {
	file := path.Join("spec", name)
	doc, err := document(root, name)
	if err != nil {
		at, text := parserFault(file, err)
		faults.Add(at, "%s", text)
		return false
	}
	w := walker{file: file, faults: faults}
	before := len(*faults)
	w.check(doc, reflect.TypeOf(v).Elem(), "the file", "")
	if len(*faults) > before {
		return false
	}
	if err := doc.Decode(v); err != nil { // cannot be, after the check
		faults.Add(Pos{file, doc.Line}, "%v", err)
		return false
	}
	w.place(doc, reflect.ValueOf(v).Elem())
	return true
}

// document parses the one YAML document of a file.
func document(root fs.FS, name string) (*yaml.Node, error) {
	raw, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var doc, more yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, errors.New("line 1: the file is empty")
	} else if err != nil {
		return nil, err
	}
	if err := decoder.Decode(&more); err == nil {
		return nil, fmt.Errorf("line %d: a second document; one file is one", more.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return doc.Content[0], nil
}

var lineOf = regexp.MustCompile(`^line (\d+): (.*)$`)

// parserFault takes the line out of the parser's error.
func parserFault(file string, err error) (Pos, string) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := lineOf.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1]) // digits only, by the expression
		return Pos{file, line}, m[2]
	}
	if errors.As(err, new(*fs.PathError)) {
		return Pos{File: file}, text
	}
	return Pos{file, 1}, text // the parser does not number its first line
}
