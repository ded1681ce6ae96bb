package jsonschema

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/gpumeter/gpumeter/gen/gentest"
	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

// compiled returns the schemas of a model by name.
func compiled(t *testing.T, m *resolve.Model) map[string]*jsonschema.Schema {
	t.Helper()
	files, err := run(m)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*jsonschema.Schema{}
	for _, f := range files {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(f.Data))
		if err != nil {
			t.Fatalf("%s: %v", f.Path, err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(f.Path, doc); err != nil {
			t.Fatalf("%s: %v", f.Path, err)
		}
		if out[strings.TrimSuffix(path.Base(f.Path), ".json")], err = c.Compile(f.Path); err != nil {
			t.Fatalf("%s: %v", f.Path, err)
		}
	}
	return out
}

// validate checks YAML as an editor would: by way of JSON.
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

// schemaOf says which schema a file of the spec obeys: its own, or that of all in its folder.
func schemaOf(file string) string {
	if dir := path.Dir(file); dir != "." && dir != "data" {
		return dir
	}
	return strings.TrimSuffix(path.Base(file), ".yaml")
}

func TestSpecObeys(t *testing.T) {
	for name, root := range map[string]fs.FS{"repository": os.DirFS("../../../spec"), "sample": gentest.Sample()} {
		spec, err := schema.Load(root)
		if err != nil {
			t.Fatal(err)
		}
		model, err := resolve.Resolve(spec)
		if err != nil {
			t.Fatal(err)
		}
		schemas := compiled(t, model)
		top, _ := fs.Glob(root, "*.yaml")
		groups, _ := fs.Glob(root, "metrics/*.yaml")
		others, _ := fs.Glob(root, "compat/*.yaml")
		tables, _ := fs.Glob(root, "data/*.yaml")
		rules, _ := fs.Glob(root, "rules/*.yaml")
		dashboards, _ := fs.Glob(root, "dashboards/*.yaml")
		if len(top) != 4 || len(groups) == 0 || len(others) == 0 || len(tables) != 2 || len(rules) == 0 || len(dashboards) == 0 {
			t.Errorf("%s: %d files, %d groups, %d other exporters, %d tables, %d rules and %d dashboards", name, len(top), len(groups), len(others), len(tables), len(rules), len(dashboards))
		}
		for _, file := range slices.Concat(top, groups, others, tables, rules, dashboards) {
			text, err := fs.ReadFile(root, file)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(t, schemas[schemaOf(file)], text); err != nil {
				t.Errorf("%s: %s: %v", name, file, err)
			}
			if word := "$schema=" + strings.Repeat("../", strings.Count(file, "/")) + "schema/" + schemaOf(file) + ".json\n"; name == "repository" && !bytes.Contains(text, []byte(word)) {
				t.Errorf("%s: its first line does not name its schema: want %s", file, word)
			}
		}
	}
}

// Each mistake is refused by the schema, and by the loader or the resolver too.
func TestMistakes(t *testing.T) {
	schemas := compiled(t, gentest.Model(t))
	for _, x := range []struct{ file, old, new, want string }{
		{"metrics/power.yaml", "brief: Electricity.", "breif: Electricity.", "'breif' not allowed"},
		{"metrics/power.yaml", "instrument: gauge", "instrument: guage", "must be one of 'gauge'"},
		{"metrics/power.yaml", "instrument: gauge", "instruments: gauge", "'instruments' not allowed"},
		{"metrics/power.yaml", "stability: stable", "stability: alpha", "must be one of 'development'"},
		{"metrics/power.yaml", "unit: W", "unit: mW", "must be one of '', '1'"},
		{"metrics/power.yaml", "    unit: W\n", "", "missing property 'unit'"},
		{"metrics/power.yaml", "inside: {}", "insight: {}", "'insight' not allowed"},
		{"metrics/power.yaml", "inside: {}", "inside: {call: X}", "'call' not allowed"},
		{"metrics/power.yaml", "file: hwmon", "flie: hwmon", "'flie' not allowed"},
		{"metrics/power.yaml", "scale: 1e-6", "scale: small", "want number"},
		{"metrics/power.yaml", "id: 7", "id: -7", "minimum: got -7"},
		{"metrics/power.yaml", "id: 7", "di: 7", "'di' not allowed"},
		{"metrics/power.yaml", "min: 187", "min: many", "want integer"},
		{"metrics/power.yaml", "name: hw.power", "nome: hw.power", "'nome' not allowed"},
		{"metrics/power.yaml", "hw.type: gpu", "hw.type: [gpu]", "want string"},
		{"metrics/power.yaml", "system: dcgm", "system: dgcm", "must be one of 'dcgm'"},
		{"metrics/power.yaml", "[gpu.limit.type]", "[gpu.limit.typ]", "must be one of 'gpu.uuid'"},
		{"metrics/power.yaml", "[gpu.limit.type]", "[gpu.limit.type, gpu.limit.type]", "items at 0 and 1 are equal"},
		{"metrics/power.yaml", "scopes: [device]", "scopes: [devise]", "must be one of 'device'"},
		{"metrics/power.yaml", "scopes: [device]", "scopes: []", "minItems"},
		{"metrics/events.yaml", "renamed_to:", "renamed-to:", "'renamed-to' not allowed"},
		{"metrics/pause.yaml", "[0.5]", "[half]", "want number"},
		{"metrics/engine-demo.yaml", "enabled: opt-in", "enabled: no", "must be one of 'default'"},
		{"attributes.yaml", "type: enum", "type: emun", "must be one of 'string'"},
		{"attributes.yaml", "additive: false", "additive: maybe", "want boolean"},
		{"attributes.yaml", "cardinality: device", "cardinality: many", "must be one of 'fixed'"},
		{"attributes.yaml", "{id: min, ", "{ident: min, ", "'ident' not allowed"},
		{"scopes.yaml", "prefixes: [gpu]", "prefixes: gpu", "want array"},
		{"scopes.yaml", "gpu.slice]", "gpu.slces]", "must be one of 'gpu.uuid'"},
		{"compat/dcgm.yaml", "metric: gpu.events.lost", "metric: gpu.events.lots", "must be one of 'gpu.events'"},
		{"compat/dcgm.yaml", "attribute: gpu.owner", "attribute: gpu.owners", "must be one of 'gpu.uuid'"},
		{"compat/dcgm.yaml", "as: rate", "as: rates", "must be one of 'rate'"},
		{"compat/dcgm.yaml", "scale: 3600", "scale: many", "want number"},
		{"compat/l9gpu.yaml", "from: [gpu.load, gpu.memory.usage]", "from: [gpu.load, gpu.memory.used]", "must be one of 'gpu.events'"},
		{"data/xids.yaml", "action: reset", "action: rset", "must be one of 'reset'"},
		{"data/xids.yaml", "severity: info", "severity: low", "must be one of 'critical'"},
		{"data/xids.yaml", "who: nobody", "who: noone", "must be one of 'operator'"},
		{"data/xids.yaml", "code: 62", "code: -62", "minimum: got -62"},
		{"data/xids.yaml", "advice: Reset it.", "advise: Reset it.", "'advise' not allowed"},
		{"data/health.yaml", "term: asking", "term: asing", "must be one of 'bad_mood'"},
		{"data/health.yaml", "weight: 0.6", "weight: much", "want number"},
		{"data/health.yaml", "    weight: 0.6\n", "", "missing property 'weight'"},
		{"data/health.yaml", "metric: gpu.alarm", "metric: gpu.alram", "must be one of 'gpu.events'"},
		{"data/health.yaml", "below: gpu.link.width.limit", "below: gpu.link.width.limits", "must be one of 'gpu.events'"},
		{"data/health.yaml", "fresh: true", "fersh: true", "'fersh' not allowed"},
		{"data/health.yaml", "fresh: true", "fresh: often", "want boolean"},
		{"data/health.yaml", "window: 90s", "window: 90", "want string"},
		{"sources.yaml", "keys: [metric]", "keys: [metrics]", "must be one of 'call'"},
		{"sources.yaml", "keys: [metric]", "key: [metric]", "'key' not allowed"},
	} {
		root := gentest.Sample()
		text := string(root[x.file].Data)
		if !strings.Contains(text, x.old) {
			t.Fatalf("%s does not contain %q", x.file, x.old)
		}
		root[x.file].Data = []byte(strings.Replace(text, x.old, x.new, 1))
		err := validate(t, schemas[schemaOf(x.file)], root[x.file].Data)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %s: want %q, got %v", x.file, x.new, x.want, err)
		}
		spec, err := schema.Load(root)
		if err == nil {
			_, err = resolve.Resolve(spec)
		}
		if err == nil {
			t.Errorf("%s: %s: the schema refuses it and the generator does not", x.file, x.new)
		}
	}
}

func TestDeterministic(t *testing.T) {
	first, err := run(gentest.Model(t))
	if err != nil {
		t.Fatal(err)
	}
	again, err := run(gentest.Model(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range first {
		if !bytes.Equal(first[i].Data, again[i].Data) {
			t.Errorf("%s differs from run to run", first[i].Path)
		}
	}
}
