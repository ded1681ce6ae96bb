package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gpumeter/gpumeter/gen/emit"
)

// schemaOf makes the schema that Helm holds values against: types are those of the defaults, and no key is known
// that has none.
func schemaOf(values string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(values), &doc); err != nil {
		return nil, err
	}
	top, err := typeOf(doc.Content[0], "", "")
	if err != nil {
		return nil, err
	}
	top["$schema"] = "http://json-schema.org/draft-07/schema#"
	top["$comment"] = emit.Header(source)
	// What charts that have this one as a dependency hand down.
	properties := top["properties"].(map[string]any)
	properties["global"] = map[string]any{"type": "object", "description": "Values of all charts of a release; none is used."}
	properties["enabled"] = map[string]any{"type": "boolean", "description": "For the condition of a chart that depends on this one."}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(top)
	return b.Bytes(), err
}

// typeOf is the schema of one value, with what its comments say.
func typeOf(n *yaml.Node, brief, more string) (map[string]any, error) {
	out := map[string]any{}
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) == 0:
		out["type"] = "object"
	case n.Kind == yaml.MappingNode:
		properties := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			comment := value.LineComment
			if comment == "" {
				comment = key.LineComment
			}
			one, err := typeOf(value, key.HeadComment, comment)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key.Value, err)
			}
			properties[key.Value] = one
		}
		out["type"], out["additionalProperties"], out["properties"] = "object", false, properties
	case n.Kind == yaml.SequenceNode:
		out["type"] = "array"
	default:
		names := map[string]string{"!!str": "string", "!!int": "integer", "!!float": "number", "!!bool": "boolean"}
		if out["type"] = names[n.Tag]; out["type"] == "" {
			return nil, fmt.Errorf("line %d: no type for %s", n.Line, n.Tag)
		}
	}
	if brief != "" {
		out["description"] = briefOf(brief)
	}
	if more != "" {
		var own map[string]any
		if err := yaml.Unmarshal([]byte(strings.TrimPrefix(more, "#")), &own); err != nil {
			return nil, fmt.Errorf("line %d: the comment %s: %w", n.Line, more, err)
		}
		maps.Copy(out, own)
	}
	return out, nil
}
