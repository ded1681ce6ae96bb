package resolve_test

import (
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/gen/gentest"
	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

func TestTwins(t *testing.T) {
	const twin = "semconv: {name: hw.power, attributes: {hw.type: gpu}}"
	for _, x := range []struct{ file, old, new, want string }{
		{power, twin, "semconv: {name: hw.power}", `spec/metrics/power.yaml:16: gpu.power.draw: semconv: hw.power requires hw.type; no attribute of ours gives it, so write it under the twin's attributes`},
		{power, twin, "semconv: {name: hw.power, attributes: {hw.state: ok}}", `spec/metrics/power.yaml:16: gpu.power.draw: semconv: hw.power requires hw.type; no attribute of ours gives it, so write it under the twin's attributes`},
		{power, twin, "semconv: {name: hw.powr, attributes: {hw.type: gpu}}", `spec/metrics/power.yaml:16: gpu.power.draw: semconv: "hw.powr" is no official metric that gen/resolve knows; did you mean "hw.power"?`},
		{power, twin, "semconv: {name: hw.power, attributes: {hw.type: gpu, hw.id: one}}", `spec/metrics/power.yaml:16: gpu.power.draw: semconv: the twin gives hw.id, and gpu.uuid gives it already`},
		// The exporter itself has no gpu.uuid to make an hw.id of.
		{pause, "    buckets: [0.5]", "    buckets: [0.5]\n    semconv: {name: hw.power}", `spec/metrics/pause.yaml:10: go.pause.duration: semconv: hw.power requires hw.id; no attribute of ours gives it, so write it under the twin's attributes
spec/metrics/pause.yaml:10: go.pause.duration: semconv: hw.power requires hw.type; no attribute of ours gives it, so write it under the twin's attributes`},
	} {
		refused(t, x.new, x.want, edit{x.file, x.old, x.new})
	}
	system := edit{scopes, "[gpumeter, go]", "[gpumeter, go, system]"}
	refused(t, "an official name", `spec/metrics/pause.yaml:5: system.uptime: OpenTelemetry defines this metric; write semconv: {name: system.uptime}`,
		system, edit{pause, "go.pause.duration", "system.uptime"})
	refused(t, "an official name, another twin", `spec/metrics/pause.yaml:5: system.uptime: OpenTelemetry defines this metric; write semconv: {name: system.uptime}`,
		system, edit{pause, "go.pause.duration", "system.uptime"},
		edit{pause, "    buckets: [0.5]", "    buckets: [0.5]\n    semconv: {name: system.memory.usage}"})
	// Two of ours that are one official attribute.
	refused(t, "two counterparts", `spec/metrics/power.yaml:17: gpu.power.draw: semconv: gpu.ecc.error.type gives error.type, and gpu.xid gives it already`,
		edit{attributes, "  - key: gpu.engine", "  - {key: gpu.xid, brief: X., type: int, from: X., cardinality: open}\n" +
			"  - {key: gpu.ecc.error.type, brief: X., type: string, from: X., cardinality: open}\n  - key: gpu.engine"},
		edit{power, "      driver: {field: [{driver: \"<500\", id: 7}, {driver: 500-589, id: 8}, {driver: \">=590\", id: 9}], ", "      driver: {call: X, "},
		edit{power, "    unit: W\n", "    unit: W\n    attributes: [gpu.xid, gpu.ecc.error.type]\n"})
}

// A twin is of the whole thing: where a group serves a part too, that has none.
func TestTwinOfWhole(t *testing.T) {
	root := gentest.Sample()
	text := string(root[shared].Data)
	root[shared].Data = []byte(strings.Replace(text, "    unit: By\n", "    unit: By\n    semconv: {name: hw.gpu.memory.usage}\n", 1))
	spec, err := schema.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	m, err := resolve.Resolve(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range m.Metrics {
		if want := x.Name == "gpu.memory.usage" || x.Name == "gpu.power.draw"; want != (x.Semconv != nil) {
			t.Errorf("%s: twin %v", x.Name, x.Semconv)
		}
	}
}
