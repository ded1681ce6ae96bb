package schema

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// tiny is the smallest spec that loads.
func tiny() map[string]string {
	return map[string]string{
		"scopes.yaml": `scopes:
  - name: device
    brief: A thing.
    prefixes: [gpu]
`,
		"sources.yaml": `sources:
  - name: driver
    brief: A driver.
    keys: [call, fields]
`,
		"attributes.yaml": `attributes:
  - key: gpu.kind
    brief: Which kind.
    type: enum
    from: The driver.
    cardinality: fixed
    members:
      - {id: min, brief: The lowest.}
      - id: max
        brief: The highest.
`,
		"metrics/power.yaml": `# a comment
group: power
scopes: [device]
brief: Electricity.
metrics:
  - name: gpu.power.draw
    brief: Power.
    instrument: gauge
    unit: W
    sources:
      driver: {call: GetPower, scale: 0.001}
    semconv: {name: hw.power, attributes: {hw.type: gpu}}
    was:
      - {system: dcgm, name: X}
  - name: gpu.power.limit
    brief: Limits.
    instrument: gauge
    unit: W
    attributes: [gpu.kind]
    sources:
      driver:
        fields:
          min: 7
          max: [{driver: "<500", id: 8}, {id: 9}]
    deprecated: {since: 1.0.0}
`,
	}
}

func files(texts map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range texts {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

func TestLoad(t *testing.T) {
	spec, err := Load(files(tiny()))
	if err != nil {
		t.Fatal(err)
	}
	const file = "spec/metrics/power.yaml"
	g := spec.Groups[0]
	limit := g.Metrics[1]
	driver := limit.Sources[0]
	for what, got := range map[string]Pos{
		file + ":2":                g.Pos,
		file + ":6":                g.Metrics[0].Pos,
		file + ":11":               g.Metrics[0].Sources[0].Pos,
		file + ":12":               g.Metrics[0].Semconv.Pos,
		file + ":14":               g.Metrics[0].Was[0].Pos,
		file + ":15":               limit.Pos,
		file + ":21":               driver.Pos,
		file + ":23":               driver.Value.Fields[0].Pos,
		file + ":24":               driver.Value.Fields[1].Pos,
		file + ":25":               limit.Deprecated.Pos,
		"spec/scopes.yaml:2":       spec.Scopes[0].Pos,
		"spec/sources.yaml:2":      spec.Sources[0].Pos,
		"spec/attributes.yaml:2":   spec.Attributes[0].Pos,
		"spec/attributes.yaml:8":   spec.Attributes[0].Members[0].Pos,
		"spec/attributes.yaml:9":   spec.Attributes[0].Members[1].Pos,
		"spec/nothing.yaml":        {File: "spec/nothing.yaml"},
		"spec/metrics/power.yaml:": {File: "spec/metrics/power.yaml:"},
	} {
		if got.String() != what {
			t.Errorf("position %s, want %s", got, what)
		}
	}
	want := Map[FieldID]{
		{Pos: driver.Value.Fields[0].Pos, Key: "min", Value: FieldID{{ID: 7}}},
		{Pos: driver.Value.Fields[1].Pos, Key: "max", Value: FieldID{{Driver: "<500", ID: 8}, {ID: 9}}},
	}
	if diff := cmp.Diff(want, driver.Value.Fields); diff != "" {
		t.Error(diff)
	}
	if got := driver.Value.Where(); !cmp.Equal(got, []string{"fields"}) {
		t.Errorf("Where: %v", got)
	}
	if got := g.Metrics[0].Sources.Get("driver"); got == nil || got.Scale != 0.001 || g.Metrics[0].Sources.Get("other") != nil {
		t.Errorf("Get: %v", got)
	}
}

const power, attributes = "metrics/power.yaml", "attributes.yaml"

func TestFaults(t *testing.T) {
	for _, x := range []struct{ file, old, new, want string }{
		// Unknown keys, at every depth.
		{power, "brief: Electricity.", "breif: Electricity.", `spec/metrics/power.yaml:4: unknown key "breif"; did you mean "brief"?` + "\n" +
			`spec/metrics/power.yaml:2: group power: missing key "brief"`},
		{power, "instrument: gauge", "instrumnet: gauge", `spec/metrics/power.yaml:8: unknown key "instrumnet"; did you mean "instrument"?` + "\n" +
			`spec/metrics/power.yaml:6: metric gpu.power.draw: missing key "instrument"`},
		{power, "call:", "cal:", `spec/metrics/power.yaml:11: unknown key "cal"; did you mean "call"?`},
		{power, "{hw.type: gpu}}", "{hw.type: gpu}, nam: x}", `spec/metrics/power.yaml:12: unknown key "nam"; did you mean "name"?`},
		{power, "name: X", "nmae: X, name: X", `spec/metrics/power.yaml:14: unknown key "nmae"; did you mean "name"?`},
		{power, `{driver: "<500"`, `{drvier: "<500"`, `spec/metrics/power.yaml:24: unknown key "drvier"; did you mean "driver"?`},
		{power, "since: 1.0.0", "since: 1.0.0, entirely_else: x", `spec/metrics/power.yaml:25: unknown key "entirely_else"`},
		{attributes, "from:", "form:", `spec/attributes.yaml:5: unknown key "form"; did you mean "from"?` + "\n" +
			`spec/attributes.yaml:2: attribute gpu.kind: missing key "from"`},
		{attributes, "{id: min, brief", "{id: min, breif: y, brief", `spec/attributes.yaml:8: unknown key "breif"; did you mean "brief"?`},
		{attributes, "attributes:", "atributes:", `spec/attributes.yaml:1: unknown key "atributes"; did you mean "attributes"?` + "\n" +
			`spec/attributes.yaml:1: the file: missing key "attributes"`},
		{"scopes.yaml", "prefixes:", "prefix: x\n    prefixes:", `spec/scopes.yaml:4: unknown key "prefix"; did you mean "prefixes"?`},
		{"sources.yaml", "keys:", "kyes:", `spec/sources.yaml:4: unknown key "kyes"; did you mean "keys"?`},
		// Missing keys.
		{power, "    brief: Power.\n", "", `spec/metrics/power.yaml:6: metric gpu.power.draw: missing key "brief"`},
		{power, "system: dcgm, ", "", `spec/metrics/power.yaml:14: was X: missing key "system"`},
		{power, "{name: hw.power, attributes", "{attributes", `spec/metrics/power.yaml:12: twin: missing key "name"`},
		{power, "{id: 9}", `{driver: ">=500"}`, `spec/metrics/power.yaml:24: fieldversion >=500: missing key "id"`},
		{attributes, ", brief: The lowest.", "", `spec/attributes.yaml:8: member min: missing key "brief"`},
		// Wrong types.
		{power, "[device]", "device", `spec/metrics/power.yaml:3: scopes: wants a list, not a single value`},
		{power, "[device]", "{device: x}", `spec/metrics/power.yaml:3: scopes: wants a list, not a mapping`},
		{power, "[device]", "[[device]]", `spec/metrics/power.yaml:3: scopes: wants a single value, not a list`},
		{power, "[device]", "[]", `spec/metrics/power.yaml:3: scopes: wants at least one`},
		{power, "[device]", "[device, device]", `spec/metrics/power.yaml:3: scopes: "device" is there twice`},
		{power, "brief: Power.", "brief:", `spec/metrics/power.yaml:7: brief: is empty`},
		{power, "brief: Power.", "brief: 7", `spec/metrics/power.yaml:7: brief: wants text; put 7 in quotes`},
		{power, "unit: W", "unit: 1", `spec/metrics/power.yaml:9: unit: wants text; put 1 in quotes`},
		{power, "scale: 0.001", "scale: mill", `spec/metrics/power.yaml:11: scale: wants a number, not "mill"`},
		{power, "{call: GetPower, scale: 0.001}", "GetPower", `spec/metrics/power.yaml:11: driver: wants a mapping, not a single value`},
		{power, "{call: GetPower, scale: 0.001}", "", `spec/metrics/power.yaml:11: driver: is empty`},
		{power, "{hw.type: gpu}", "[hw.type]", `spec/metrics/power.yaml:12: attributes: wants a mapping, not a list`},
		{power, "min: 7", "min: seven", `spec/metrics/power.yaml:23: min: wants a whole number of at most 32 bits, not "seven"`},
		{power, "min: 7", "min: -7", `spec/metrics/power.yaml:23: min: wants a whole number of at most 32 bits, not "-7"`},
		{power, "min: 7", "min: 4294967296", `spec/metrics/power.yaml:23: min: wants a whole number of at most 32 bits, not "4294967296"`},
		{power, "min: 7", "min: {id: 7}", `spec/metrics/power.yaml:23: min: wants a list, not a mapping`},
		{power, "min: 7", "7: 7", `spec/metrics/power.yaml:23: a key is text, without anchors or merging`},
		{attributes, "cardinality: fixed", "cardinality: fixed\n    additive: maybe", `spec/attributes.yaml:7: additive: wants true or false, not "maybe"`},
		// Words.
		{power, "instrument: gauge", "instrument: gague", `spec/metrics/power.yaml:8: instrument: "gague" is none of gauge, counter, updowncounter, histogram; did you mean "gauge"?`},
		{power, "system: dcgm", "system: dcmg", `spec/metrics/power.yaml:14: system: "dcmg" is none of dcgm, l9gpu, nvidia_gpu_exporter, amd, gpud, ingero; did you mean "dcgm"?`},
		{"sources.yaml", "[call, fields]", "[call, fild]", `spec/sources.yaml:4: keys: "fild" is none of call, event, field, fields, file, column, metric; did you mean "field"?`},
		// YAML's own.
		{power, "    unit: W\n", "    unit: W\n    unit: J\n", `spec/metrics/power.yaml:10: key "unit" is there twice, first on line 9`},
		{power, "          min: 7\n", "          min: 7\n          min: 8\n", `spec/metrics/power.yaml:24: key "min" is there twice, first on line 23`},
		{power, "brief: Power.", "brief: &b Power.", `spec/metrics/power.yaml:7: brief: the spec has no anchors or aliases; write it out`},
		{power, "brief: Power.", "brief: brief: Power.", `spec/metrics/power.yaml:7: mapping values are not allowed in this context`},
		{power, "# a comment\n", "# a comment\n---\ngroup: other\n---\n", `spec/metrics/power.yaml:4: a second document; one file is one`},
		{power, "group: power", "group: pwoer", `spec/metrics/power.yaml:2: group "pwoer" stands in power.yaml; they must agree`},
	} {
		texts := tiny()
		if !strings.Contains(texts[x.file], x.old) {
			t.Fatalf("%s does not contain %q", x.file, x.old)
		}
		texts[x.file] = strings.Replace(texts[x.file], x.old, x.new, 1)
		expect(t, texts, x.new, x.want)
	}
}

// expect fails when loading does not report exactly the lines of want, in whatever order.
func expect(t *testing.T, texts map[string]string, what, want string) {
	t.Helper()
	_, err := Load(files(texts))
	if err == nil {
		t.Errorf("%s: no fault; want %s", what, want)
		return
	}
	for line := range strings.SplitSeq(want, "\n") {
		if !strings.Contains("\n"+err.Error()+"\n", "\n"+line+"\n") {
			t.Errorf("%s:\n got %s\nwant %s", what, err, line)
		}
	}
	if got := strings.Count(err.Error(), "\n"); got != strings.Count(want, "\n") {
		t.Errorf("%s: reports more or less than it should:\n%s", what, err)
	}
}

func TestWholeFiles(t *testing.T) {
	for what, x := range map[string]struct{ file, text, want string }{
		"empty":      {power, "", "spec/metrics/power.yaml:1: the file is empty"},
		"comment":    {power, "# nothing\n", "spec/metrics/power.yaml:1: the file is empty"},
		"null":       {power, "~\n", "spec/metrics/power.yaml:1: the file: is empty"},
		"list":       {power, "- a\n", "spec/metrics/power.yaml:1: the file: wants a mapping, not a list"},
		"not YAML":   {power, "group: [power\n", "spec/metrics/power.yaml:1: did not find expected ',' or ']'"},
		"first line": {power, "a: b: c\n", "spec/metrics/power.yaml:1: mapping values are not allowed in this context"},
		"binary":     {power, "\x00\x01", "spec/metrics/power.yaml:1: control characters are not allowed"},
		"other name": {"metrics/heat.yml", "group: heat\n", "spec/metrics/heat.yml: only files named <group>.yaml belong here"},
		"folder":     {"metrics/more/heat.yaml", "group: heat\n", "spec/metrics/more: only files named <group>.yaml belong here"},
	} {
		texts := tiny()
		texts[x.file] = x.text
		expect(t, texts, what, x.want)
	}
	expect(t, nil, "nothing at all", strings.Join([]string{
		"spec/attributes.yaml: cannot be read: open attributes.yaml: file does not exist",
		"spec/metrics: cannot be read: open metrics: file does not exist",
		"spec/scopes.yaml: cannot be read: open scopes.yaml: file does not exist",
		"spec/sources.yaml: cannot be read: open sources.yaml: file does not exist",
	}, "\n"))
}

// Faults of several files come at once, by file and line.
func TestAllAtOnce(t *testing.T) {
	texts := tiny()
	texts[power] = strings.NewReplacer("call:", "cal:", "brief: Power.", "brief: [Power.]", "min: 7", "min: x").Replace(texts[power])
	texts["scopes.yaml"] = strings.Replace(texts["scopes.yaml"], "    brief: A thing.\n", "", 1)
	texts["sources.yaml"] = ""
	texts["metrics/heat.yaml"] = "group: [\n"
	_, err := Load(files(texts))
	want := `spec/metrics/heat.yaml:1: did not find expected node content
spec/metrics/power.yaml:7: brief: wants a single value, not a list
spec/metrics/power.yaml:11: unknown key "cal"; did you mean "call"?
spec/metrics/power.yaml:23: min: wants a whole number of at most 32 bits, not "x"
spec/scopes.yaml:2: scope device: missing key "brief"
spec/sources.yaml:1: the file is empty`
	if err == nil {
		t.Fatal("no fault")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestFieldID(t *testing.T) {
	for text, want := range map[string]FieldID{
		"7":                          {{ID: 7}},
		"0x10":                       {{ID: 16}},
		"[{id: 7}]":                  {{ID: 7}},
		"[{driver: 575-589, id: 7}]": {{Driver: "575-589", ID: 7}},
		`[{driver: "<5", id: 4294967295}, {driver: ">=5", id: 1}]`: {{Driver: "<5", ID: 4294967295}, {Driver: ">=5", ID: 1}},
	} {
		texts := tiny()
		texts[power] = strings.Replace(texts[power], "call: GetPower", "field: "+text, 1)
		spec, err := Load(files(texts))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		ref := spec.Groups[0].Metrics[0].Sources[0].Value
		if diff := cmp.Diff(want, ref.Field); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		if got := ref.Where(); !cmp.Equal(got, []string{"field"}) {
			t.Errorf("%s: Where: %v", text, got)
		}
	}
}

// Every locator is a key of SourceRef, and says so by Where.
func TestLocators(t *testing.T) {
	all := SourceRef{Call: "x", Event: "x", Field: FieldID{{}}, Fields: Map[FieldID]{{}}, File: "x", Column: "x", Metric: "x", Scale: 2, Note: "x"}
	if diff := cmp.Diff(Locators(), all.Where()); diff != "" {
		t.Error(diff)
	}
	if got := (SourceRef{Scale: 2, Note: "x", Field: FieldID{}}).Where(); len(got) != 0 {
		t.Errorf("Where of nothing: %v", got)
	}
}

// FuzzLoad loads whatever is written: an error or a spec, never a panic.
func FuzzLoad(f *testing.F) {
	for _, text := range tiny() {
		f.Add(text)
	}
	for _, text := range []string{"", "~", "a: &x [*x]", "metrics: {a: b}", "? [a]\n: b", "<<: {group: power}", "group: !!binary x", "---\n---\n", "attributes: [~]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name := range tiny() {
			texts := tiny()
			texts[name] = text
			spec, err := Load(files(texts))
			if (spec == nil) == (err == nil) {
				t.Errorf("spec %v and error %v", spec, err)
			}
		}
	})
}
