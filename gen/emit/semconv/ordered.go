package semconv

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/gpumeter/gpumeter/gen/emit"
)

// mapping is a YAML mapping in the order it was built.
type mapping []entry

type entry struct {
	key   string
	value any
}

// add appends a key.
func (m *mapping) add(key string, value any) { *m = append(*m, entry{key, value}) }

// text appends a key whose value is not empty.
func (m *mapping) text(key, value string) {
	if value != "" {
		m.add(key, value)
	}
}

// MarshalYAML keeps the order.
func (m mapping) MarshalYAML() (any, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, e := range m {
		var key, value yaml.Node
		if err := key.Encode(e.key); err != nil {
			return nil, fmt.Errorf("%s: %w", e.key, err)
		}
		if err := value.Encode(e.value); err != nil {
			return nil, fmt.Errorf("%s: %w", e.key, err)
		}
		n.Content = append(n.Content, &key, &value)
	}
	return n, nil
}

// list is a YAML list of one entry a line.
type list []any

// short is a YAML list or mapping written in one line.
type short struct{ of any }

// MarshalYAML chooses the style.
func (s short) MarshalYAML() (any, error) {
	n := new(yaml.Node)
	if err := n.Encode(s.of); err != nil {
		return nil, err
	}
	n.Style = yaml.FlowStyle
	return n, nil
}

// file writes one YAML document below the folder, with the header of a generated file.
func file(name, from string, doc mapping) (emit.File, error) {
	path := folder + name + ".yaml"
	var b bytes.Buffer
	b.WriteString("# " + emit.Header(from) + "\n")
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(doc); err != nil {
		return emit.File{}, fmt.Errorf("%s: %w", path, err)
	}
	if err := e.Close(); err != nil {
		return emit.File{}, fmt.Errorf("%s: %w", path, err)
	}
	return emit.File{Path: path, Data: b.Bytes()}, nil
}
