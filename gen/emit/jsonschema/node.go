package jsonschema

import (
	"bytes"
	"encoding/json"
)

// node is one JSON schema, with the keywords used here in the order they are written.
type node struct {
	Schema               string     `json:"$schema,omitempty"`
	Comment              string     `json:"$comment,omitempty"`
	Title                string     `json:"title,omitempty"`
	Description          string     `json:"description,omitempty"`
	Type                 string     `json:"type,omitempty"`
	AnyOf                []*node    `json:"anyOf,omitempty"`
	Enum                 []string   `json:"enum,omitempty"`
	EnumDescriptions     []string   `json:"enumDescriptions,omitempty"` // not of the standard, but editors show them
	Pattern              string     `json:"pattern,omitempty"`
	Minimum              *int64     `json:"minimum,omitempty"`
	Maximum              *int64     `json:"maximum,omitempty"`
	MinItems             int        `json:"minItems,omitempty"`
	UniqueItems          bool       `json:"uniqueItems,omitempty"`
	Items                *node      `json:"items,omitempty"`
	Required             []string   `json:"required,omitempty"`
	Properties           properties `json:"properties,omitempty"`
	AdditionalProperties any        `json:"additionalProperties,omitempty"` // false, or a *node
}

// properties are in the order of the spec, which is that of an editor's suggestions.
type properties []property

type property struct {
	key  string
	node *node
}

// MarshalJSON writes an object in the order of the list.
func (p properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, x := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, part := range []any{x.key, x.node} {
			if j > 0 {
				b.WriteByte(':')
			}
			raw, err := marshal(part, "")
			if err != nil {
				return nil, err
			}
			b.Write(raw)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// marshal is json.Marshal without the escapes that only HTML needs.
func marshal(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
