package schema

import (
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// Map is a YAML mapping that keeps the order it was written in.
type Map[T any] []Named[T]

// Named is one entry of a Map.
type Named[T any] struct {
	Pos
	Key   string
	Value T
}

// UnmarshalYAML keeps the order of the mapping.
func (m *Map[T]) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: wants a mapping", n.Line)
	}
	for i := 0; i < len(n.Content); i += 2 {
		e := Named[T]{Key: n.Content[i].Value}
		if err := n.Content[i+1].Decode(&e.Value); err != nil {
			return err
		}
		*m = append(*m, e)
	}
	return nil
}

func (Map[T]) valueType() reflect.Type { return reflect.TypeFor[T]() }

// Get returns the entry of that key, or nil.
func (m Map[T]) Get(key string) *T {
	for i := range m {
		if m[i].Key == key {
			return &m[i].Value
		}
	}
	return nil
}

// UnmarshalYAML reads a number, or a list of versions.
func (f *FieldID) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*f = FieldID{{}}
		return n.Decode(&(*f)[0].ID)
	}
	return n.Decode((*[]FieldVersion)(f))
}
