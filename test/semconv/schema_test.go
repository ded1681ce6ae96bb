// Package semconv checks the registry under spec/semconv: its format, and all it says of the official one.
package semconv

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

const folder = "../../spec/semconv"

// texts are the registry's files by name.
func texts(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, f := range files {
		if out[filepath.Base(f)], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"manifest.yaml", "attributes.yaml", "scopes.yaml", "power.yaml", "system.yaml"} {
		if out[name] == nil {
			t.Fatalf("%s has no %s", folder, name)
		}
	}
	return out
}

// schemaOf says which schema a file obeys.
func schemaOf(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	name := "definition2.schema.json"
	if path.Base(file) == "manifest.yaml" {
		name = "manifest.schema.json"
	}
	s, err := jsonschema.NewCompiler().Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate checks YAML by way of JSON.
func validate(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

// Every file of the registry obeys the format.
func TestFormat(t *testing.T) {
	all := texts(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := validate(t, schemaOf(t, name), all[name]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The schemas refuse what the format does.
func TestMistakes(t *testing.T) {
	all := texts(t)
	for _, x := range []struct{ file, old, new, want string }{
		// A key in the wrong place, where only annotations are free.
		{"power.yaml", "    unit: W\n", "    unit: W\n    scale: 0.001\n", "'scale' not allowed"},
		{"power.yaml", "    annotations:\n      gpumeter:\n        prometheus:", "    gpumeter:\n        prometheus:", "'gpumeter' not allowed"},
		{"power.yaml", "metrics:\n", "groups: []\nmetrics:\n", "'groups' not allowed"},
		{"power.yaml", "ref_group: gpumeter.scope.device", "ref_group: gpumeter.scope.device\n        requirement_level: required", "'requirement_level' not allowed"},
		{"power.yaml", "- ref: gpu.power.limit.type", "- ref: gpu.power.limit.type\n        type: string", "'type' not allowed"},
		{"power.yaml", "- ref: gpu.power.limit.type", "- reference: gpu.power.limit.type", "missing property 'ref'"},
		{"system.yaml", "    ref: system.cpu.time", "    ref: system.cpu.time\n    unit: s", "'unit' not allowed"},
		{"scopes.yaml", "    visibility: internal", "    visibility: internal\n    brief: A device.", "'brief' not allowed"},
		{"scopes.yaml", "    visibility: internal", "    visibility: public", "missing properties 'brief', 'stability'"},
		{"attributes.yaml", "  - key: gpu.uuid", "  - key: gpu.uuid\n    additive: false", "'additive' not allowed"},
		{"attributes.yaml", "          value: ok", "          value: ok\n          label: ok", "'label' not allowed"},
		// A word the format has not.
		{"power.yaml", "file_format: definition/2", "file_format: definition/1", "must be 'definition/2'"},
		{"power.yaml", "instrument: gauge", "instrument: guage", "must be one of 'counter'"},
		{"power.yaml", "requirement_level: recommended", "requirement_level: required", "must be one of 'recommended'"},
		{"power.yaml", "requirement_level: required", "requirement_level: always", "must be one of 'required'"},
		{"power.yaml", "requirement_level: required", "requirement_level: {now_and_then: yes}", "'now_and_then' not allowed"},
		{"power.yaml", "stability: development", "stability: experimental", "must be one of 'development'"},
		{"power.yaml", "    unit: W\n", "    unit: W\n    deprecated: {reason: renamed}\n", "missing property 'renamed_to'"},
		{"power.yaml", "    unit: W\n", "    unit: W\n    deprecated: gone\n", "want object"},
		{"power.yaml", "    unit: W\n", "", "missing property 'unit'"},
		{"attributes.yaml", "    type: string", "    type: text", "must be one of 'string'"},
		{"attributes.yaml", "    type: string", "    type: {members: []}", "minItems"},
		{"attributes.yaml", "examples: [79]", `examples: ["79"]`, "want integer"},
		{"attributes.yaml", "examples: [NVIDIA H100 80GB HBM3]", "examples: [100]", "want string"},
		// The manifest.
		{"manifest.yaml", "stability: development", "stability: development\nname: gpumeter", "'name' not allowed"},
		{"manifest.yaml", "/schemas/1.44.0", "/schemas/latest", "does not match pattern"},
		{"manifest.yaml", "  - schema_url: https://opentelemetry", "  - url: https://opentelemetry", "missing property 'schema_url'"},
	} {
		text := string(all[x.file])
		if !strings.Contains(text, x.old) {
			t.Errorf("%s does not contain %q", x.file, x.old)
			continue
		}
		err := validate(t, schemaOf(t, x.file), []byte(strings.Replace(text, x.old, x.new, 1)))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %q: want %q, got %v", x.file, x.new, x.want, err)
		}
	}
}
