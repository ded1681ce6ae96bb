package semconv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// All the registry says of the official one is so.
func TestOfficial(t *testing.T) {
	for _, fault := range check(read(t, texts(t)), official(t)) {
		t.Error(fault)
	}
}

// Every twin of spec/metrics is in the registry, so TestOfficial has seen it.
func TestTwins(t *testing.T) {
	twins := map[string]string{} // by metric
	r := read(t, texts(t))
	for _, m := range append(r.Metrics, r.Refinements...) {
		if twin := m.Annotations.Gpumeter.Semconv; twin != nil {
			twins[m.Name+m.Ref] = twin.Name // one of them is empty
		}
	}
	files, err := filepath.Glob("../../spec/metrics/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var group struct {
			Metrics []struct {
				Name    string
				Semconv struct{ Name string }
			}
		}
		if err := yaml.Unmarshal(raw, &group); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		for _, m := range group.Metrics {
			if m.Semconv.Name != twins[m.Name] {
				t.Errorf("%s: %s has the twin %q, in the registry %q", f, m.Name, m.Semconv.Name, twins[m.Name])
			}
			if m.Semconv.Name != "" {
				said++
			}
		}
	}
	if said == 0 || said != len(twins) {
		t.Errorf("%d twins in spec/metrics, %d in the registry", said, len(twins))
	}
}

// Each thing check is for is found.
func TestFound(t *testing.T) {
	f := official(t)
	for _, x := range []struct{ file, old, new, want string }{
		{"manifest.yaml", "@v1.44.0", "@v1.43.0", "manifest: depends on"},
		{"manifest.yaml", "/schemas/1.44.0", "/schemas/1.4.0", "manifest: depends on"},
		{"attributes.yaml", "  - key: gpu.uuid", "  - key: cpu.mode\n  - key: gpu.uuid", "attribute cpu.mode: OpenTelemetry defines it"},
		{"attributes.yaml", "  - key: gpu.uuid", "  - key: gen_ai.request.model\n  - key: gpu.uuid", "attribute gen_ai.request.model: OpenTelemetry defines it"},
		{"attributes.yaml", "  - key: gpu.uuid", "  - key: gpu.model\n  - key: gpu.uuid", "attribute gpu.model: defined twice"},
		{"attributes.yaml", "  - key: gpu.uuid", "  - key: gpu.name\n  - key: gpu.uuid", "attribute gpu.name: nothing refers to it"},
		{"attributes.yaml", "  - key: gpu.uuid", "  - key: gpu.name\n    type: string\n  - key: gpu.uuid", "attribute gpu.name: a string needs examples"},
		{"attributes.yaml", "- key: hw.id", "- key: hw.uuid", "attribute gpu.uuid: hw.uuid is no official attribute"},
		{"attributes.yaml", "late: degraded", "late: delayed", "attribute gpu.state: hw.state has no value delayed"},
		{"attributes.yaml", "late: degraded", "later: degraded", "attribute gpu.state: later is none of its values"},
		{"scopes.yaml", "- ref: gpu.index", "- ref: gpu.number", "group gpumeter.scope.device: gpu.number is neither ours nor official"},
		{"scopes.yaml", "- id: gpumeter.scope.device", "- id: gpumeter.scope.owner", "group gpumeter.scope.owner: defined twice"},
		{"power.yaml", "ref_group: gpumeter.scope.device", "ref_group: gpumeter.scope.devices", "metric gpu.power.draw: no group gpumeter.scope.devices"},
		{"power.yaml", "- ref: gpu.power.limit.type", "- ref: hw.limits", "metric gpu.power.limit: hw.limits is neither ours nor official"},
		{"power.yaml", "name: gpu.power.draw", "name: hw.power", "metric hw.power: OpenTelemetry defines it; it is to be refined"},
		{"power.yaml", "name: hw.power", "name: hw.gpu.power", "metric gpu.power.draw: its twin hw.gpu.power is no official metric"},
		{"power.yaml", "            hw.type: gpu\n", "", "metric gpu.power.draw: its twin hw.power requires hw.type"},
		{"power.yaml", "            hw.type: gpu\n", "            hw.type: accelerator\n", "metric gpu.power.draw: its twin's hw.type has no value accelerator"},
		{"power.yaml", "            hw.type: gpu\n", "            hw.type: gpu\n            hw.state: ok\n", "metric gpu.power.draw: its twin hw.power has no attribute hw.state"},
		{"power.yaml", "unit: W\n", "unit: J\n", `metric gpu.power.draw: in "J", its twin hw.power in "W"`},
		{"power.yaml", "ref_group: gpumeter.scope.device", "ref: gpu.model", "metric gpu.power.draw: its twin hw.power requires hw.id"},
		{"system.yaml", "ref: system.cpu.time", "ref: system.cpu.times", "refinement gpumeter.system.cpu.time: system.cpu.times is no official metric"},
		{"system.yaml", "instrument: counter", "instrument: gauge", `refinement gpumeter.system.cpu.time: a gauge in "s", officially a counter in "s"`},
		{"system.yaml", "members: [user,", "members: [usr,", "metric system.cpu.time: cpu.mode has no value usr"},
	} {
		all := texts(t)
		text := string(all[x.file])
		if !strings.Contains(text, x.old) {
			t.Errorf("%s does not contain %q", x.file, x.old)
			continue
		}
		all[x.file] = []byte(strings.Replace(text, x.old, x.new, 1))
		if faults := strings.Join(check(read(t, all), f), "\n"); !strings.Contains(faults, x.want) {
			t.Errorf("%s: %q: want %q, got\n%s", x.file, x.new, x.want, faults)
		}
	}
}
