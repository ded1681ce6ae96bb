package kubernetes

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// schemas writes the API server's own description of its kinds, those of CRDs among them, as a JSON schema for each,
// and says where kubeconform finds them.
func (c *cluster) schemas(t *testing.T) (location string) {
	t.Helper()
	text, err := c.admin.Discovery().RESTClient().Get().AbsPath("/openapi/v2").SetHeader("Accept", "application/json").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var openapi struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	if err := json.Unmarshal(text, &openapi); err != nil {
		t.Fatal(err)
	}
	dir, kinds := roomDir+"/schemas", 0
	for name, definition := range openapi.Definitions {
		strict(definition)
		known, _ := definition["x-kubernetes-group-version-kind"].([]any)
		for _, is := range known {
			kind, _ := is.(map[string]any)
			group := kind["group"]
			if group == "" {
				group = kind["version"] // as kubeconform has it
			}
			file := fmt.Sprintf("%s-%s-%s.json", kind["kind"], group, kind["version"])
			write(t, filepath.Join(dir, strings.ToLower(file)), `{"$ref": "definitions.json#/definitions/`+name+`"}`)
			kinds++
		}
	}
	if kinds < 100 {
		t.Fatalf("only %d kinds", kinds)
	}
	all, err := json.Marshal(map[string]any{"definitions": openapi.Definitions})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "definitions.json"), string(all))
	return dir + "/{{.ResourceKind}}-{{.Group}}-{{.ResourceAPIVersion}}.json"
}

// strict takes no field that is not described, and says what an int-or-string is in the words of JSON schema.
func strict(schema map[string]any) {
	if _, open := schema["additionalProperties"]; schema["properties"] != nil && !open && schema["x-kubernetes-preserve-unknown-fields"] != true {
		schema["additionalProperties"] = false
	}
	if schema["format"] == "int-or-string" || schema["x-kubernetes-int-or-string"] == true {
		delete(schema, "type")
		schema["oneOf"] = []any{map[string]any{"type": "string"}, map[string]any{"type": "integer"}}
	}
	delete(schema, "format") // those of numbers and times are Kubernetes' own
	for _, part := range []any{schema["items"], schema["additionalProperties"]} {
		if part, is := part.(map[string]any); is {
			strict(part)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, part := range properties {
		if part, is := part.(map[string]any); is {
			strict(part)
		}
	}
}
