package resolve_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gpumeter/gpumeter/gen/gentest"
)

const (
	attributes = "attributes.yaml"
	scopes     = "scopes.yaml"
	sources    = "sources.yaml"
	demo       = "metrics/engine-demo.yaml"
	events     = "metrics/events.yaml"
	pause      = "metrics/pause.yaml"
	links      = "metrics/links.yaml"
	feeling    = "metrics/feeling.yaml"
	power      = "metrics/power.yaml"
	shared     = "metrics/shared.yaml"
)

func TestNames(t *testing.T) {
	for _, x := range []struct{ file, old, new, want string }{
		{power, "name: gpu.power.draw", "name: gpu.Power.draw", `spec/metrics/power.yaml:6: gpu.Power.draw: a name is lower-case words joined by dots and underscores`},
		{power, "name: gpu.power.draw", "name: gpu.power.draw.total", `spec/metrics/power.yaml:6: gpu.power.draw.total: a gauge must not be called total`},
		{events, "name: gpu.events.lost", "name: gpu.events.lost_total", `spec/metrics/events.yaml:12: gpu.events.lost_total: the word "total" is added by the translation to Prometheus; leave it out`},
		{power, "name: gpu.power.draw", "name: gpu.power.draw_watts", `spec/metrics/power.yaml:6: gpu.power.draw_watts: the word "watts" is added by the translation to Prometheus; leave it out`},
		{shared, "name: gpu.load", "name: gpu.load.ratio", `spec/metrics/shared.yaml:11: gpu.load.ratio: the word "ratio" is added by the translation to Prometheus; leave it out`},
		{power, "name: gpu.power.draw", "name: go.power.draw", `spec/metrics/power.yaml:6: go.power.draw: names of scope device start with gpu., and go. is that of scope self`},
		{power, "name: gpu.power.draw", "name: gpu.partition.draw", `spec/metrics/power.yaml:6: gpu.partition.draw: names of scope device start with gpu., and gpu.partition. is that of scope partition`},
		{demo, "name: gpumeter.build.info", "name: build.info", `spec/metrics/engine-demo.yaml:5: build.info: names of scope self start with gpumeter. or go.`},
		{power, "name: gpu.power.limit", "name: gpu.power.draw", `spec/metrics/power.yaml:20: gpu.power.draw: the same field Power.Draw as gpu.power.draw at spec/metrics/power.yaml:6
spec/metrics/power.yaml:20: gpu.power.draw: the same name as at spec/metrics/power.yaml:6`},
		{power, "name: gpu.power.limit", "name: gpu.power_draw", `spec/metrics/power.yaml:20: gpu.power_draw: the same Prometheus name gpu_power_draw_watts as gpu.power.draw at spec/metrics/power.yaml:6`},
		{power, "name: gpu.power.limit", "name: gpu.draw", `spec/metrics/power.yaml:20: gpu.draw: the same field Power.Draw as gpu.power.draw at spec/metrics/power.yaml:6`},
		// A gauge of unit "" bears the name OpenMetrics gives the family of the counter gpu_events_total.
		{shared, "name: gpu.load", "name: gpu.events", `spec/metrics/shared.yaml:11: gpu.events: the same name as at spec/metrics/events.yaml:5`},
		{shared, "name: gpu.load\n    brief: Share of the time at work, by limit and engine.\n    instrument: gauge\n    unit: \"1\"",
			"name: gpu_events.x\n    brief: X.\n    instrument: gauge\n    unit: \"\"", `spec/metrics/shared.yaml:11: gpu_events.x: names of scope device start with gpu.`},
		{shared, "name: gpu.load\n    brief: Share of the time at work, by limit and engine.\n    instrument: gauge\n    unit: \"1\"",
			"name: gpu.events_lost\n    brief: X.\n    instrument: gauge\n    unit: \"\"", `spec/metrics/shared.yaml:11: gpu.events_lost: the same Prometheus name gpu_events_lost as gpu.events.lost at spec/metrics/events.yaml:12`},
		// A histogram's series.
		{demo, "name: gpumeter.build.info", "name: go.pause.duration_seconds_sum", `spec/metrics/engine-demo.yaml:5: go.pause.duration_seconds_sum: the word "seconds" is added by the translation to Prometheus; leave it out
spec/metrics/engine-demo.yaml:5: go.pause.duration_seconds_sum: the word "sum" is added by the translation to Prometheus; leave it out
spec/metrics/pause.yaml:5: go.pause.duration: the same Prometheus name go_pause_duration_seconds_sum as go.pause.duration_seconds_sum at spec/metrics/engine-demo.yaml:5`},
		// Attributes.
		{attributes, "key: gpu.code", "key: gpu.Code", `spec/attributes.yaml:38: attribute "gpu.Code": a key is lower-case words joined by dots and underscores
spec/metrics/engine-demo.yaml:12: gpumeter.wait.duration: attribute "gpu.code" is not in spec/attributes.yaml
spec/metrics/events.yaml:5: gpu.events: attribute "gpu.code" is not in spec/attributes.yaml`},
		{attributes, "key: gpu.code", "key: gpu.limit_type", `spec/attributes.yaml:38: gpu.limit_type: the same name as gpu.limit.type at spec/attributes.yaml:19
spec/metrics/engine-demo.yaml:12: gpumeter.wait.duration: attribute "gpu.code" is not in spec/attributes.yaml
spec/metrics/events.yaml:5: gpu.events: attribute "gpu.code" is not in spec/attributes.yaml`},
		{attributes, "key: gpu.slice", "key: le", `spec/attributes.yaml:14: le: the label le is Prometheus' own
spec/attributes.yaml:14: le: no metric has this attribute
spec/scopes.yaml:6: scope partition: attribute "gpu.slice" is not in spec/attributes.yaml`},
		{attributes, "id: decoder", "id: Decoder", `spec/attributes.yaml:37: gpu.engine: member "Decoder" is not of lower-case words joined by underscores`},
		{attributes, "id: decoder", "id: encoder", `spec/attributes.yaml:37: gpu.engine: member "encoder" is there twice`},
		// Scopes, sources, groups.
		{scopes, "name: partition", "name: gpu-partition", `spec/metrics/shared.yaml:1: group shared: scope "partition" is not in spec/scopes.yaml
spec/scopes.yaml:6: scope "gpu-partition": a name is one lower-case word
spec/scopes.yaml:6: scope gpu-partition: no group serves it`},
		{scopes, "name: partition", "name: device", `spec/attributes.yaml:14: gpu.slice: no metric has this attribute
spec/metrics/shared.yaml:1: group shared: scope "partition" is not in spec/scopes.yaml
spec/scopes.yaml:6: scope device is there twice`},
		{scopes, "prefixes: [gpumeter, go]", "prefixes: [gpumeter, go, Go]", `spec/scopes.yaml:11: scope self: prefix "Go" is not of lower-case words joined by dots and underscores`},
		{scopes, "prefixes: [gpumeter, go]", "prefixes: [gpumeter, go, gpu]", `spec/scopes.yaml:11: scope self: prefix gpu is that of scope device`},
		{scopes, "prefixes: [gpu.partition]", "prefixes: [gpu.partition, gpu.part]", `spec/metrics/shared.yaml:1: group shared: scope partition has several prefixes, so it cannot share a group`},
		{scopes, "within: device", "within: devise", `spec/scopes.yaml:6: scope partition: within "devise": no scope of whole things written before it; did you mean "device"?`},
		{scopes, "within: device", "within: self", `spec/scopes.yaml:6: scope partition: within "self": no scope of whole things written before it`},
		{scopes, "[gpu.slice]", "[gpu.slice, gpu.uuid]", `spec/scopes.yaml:6: scope partition: scope device, which it is within, carries gpu.uuid already`},
		{sources, "name: inside", "name: in side", `spec/metrics/engine-demo.yaml:11: gpumeter.build.info: source inside: is not in spec/sources.yaml; did you mean "in side"?
spec/metrics/pause.yaml:11: go.pause.duration: source inside: is not in spec/sources.yaml; did you mean "in side"?
spec/metrics/power.yaml:15: gpu.power.draw: source inside: is not in spec/sources.yaml; did you mean "in side"?
spec/sources.yaml:11: source "in side": a name is one lower-case word
spec/sources.yaml:11: source in side: no metric names it`},
		{sources, "name: tool", "name: driver", `spec/metrics/events.yaml:17: gpu.events.lost: source tool: is not in spec/sources.yaml
spec/metrics/events.yaml:25: gpu.events.asking: source tool: is not in spec/sources.yaml
spec/metrics/feeling.yaml:17: gpu.alarm: source tool: is not in spec/sources.yaml
spec/metrics/feeling.yaml:23: gpu.utilization: source tool: is not in spec/sources.yaml
spec/metrics/feeling.yaml:30: gpu.health.penalty: source tool: is not in spec/sources.yaml
spec/metrics/power.yaml:14: gpu.power.draw: source tool: is not in spec/sources.yaml
spec/sources.yaml:5: source driver is there twice`},
	} {
		refused(t, x.new, x.want, edit{x.file, x.old, x.new})
	}
}

func TestPolicies(t *testing.T) {
	for _, x := range []struct{ file, old, new, want string }{
		// Briefs.
		{power, "brief: Electricity.", "brief: Electricity", `spec/metrics/power.yaml:1: group power: a brief is a sentence and ends with a full stop`},
		{power, "brief: Power that may be drawn.", `brief: " "`, `spec/metrics/power.yaml:20: gpu.power.limit: empty brief`},
		{power, "brief: Power that may be drawn.", `brief: "Power\nthat may."`, `spec/metrics/power.yaml:20: gpu.power.limit: a brief is one line without backslashes`},
		{attributes, "The lowest.", "The lowest", `spec/attributes.yaml:27: gpu.limit.type min: a brief is a sentence and ends with a full stop`},
		{scopes, "A part of a thing.", "A part of a thing", `spec/scopes.yaml:6: scope partition: a brief is a sentence and ends with a full stop`},
		// Units.
		{power, "unit: W", "unit: Wh/s", `spec/metrics/power.yaml:6: gpu.power.draw: unknown unit "Wh/s"`},
		{power, "unit: W", "unit: cel", `spec/metrics/power.yaml:6: gpu.power.draw: unknown unit "cel"; did you mean "Cel"?`},
		{power, "unit: W", "unit: mW", `spec/metrics/power.yaml:6: gpu.power.draw: unit "mW" is not a base unit; write "W" and a scale`},
		{shared, `unit: "1"`, `unit: "%"`, `spec/metrics/shared.yaml:11: gpu.load: unit "%" is not a base unit; write "1" and a scale`},
		{pause, "unit: s", "unit: sec", `spec/metrics/pause.yaml:5: go.pause.duration: unknown unit "sec"`},
		{events, `unit: "{event}"`, `unit: "{Event}"`, `spec/metrics/events.yaml:5: gpu.events: unknown unit "{Event}"`},
		{events, `unit: "{event}"`, `unit: ""`, `spec/metrics/events.yaml:5: gpu.events: a state or an info is a gauge, not a counter`},
		{events, `unit: "{event}"`, `unit: "1"`, `spec/metrics/events.yaml:5: gpu.events: a ratio is a gauge, not a counter`},
		{events, `unit: "{event}"`, `unit: By/s`, `spec/metrics/events.yaml:5: gpu.events: a rate is a gauge, not a counter`},
		{demo, `unit: ""`, `unit: s`, `spec/metrics/engine-demo.yaml:5: gpumeter.build.info: an info is a gauge of unit ""`},
		// Buckets.
		{pause, "    buckets: [0.5]\n", "", `spec/metrics/pause.yaml:5: go.pause.duration: a histogram has either buckets or foreign_buckets, and nothing else has them`},
		{power, "unit: W", "unit: W\n    buckets: [0.5]", `spec/metrics/power.yaml:6: gpu.power.draw: a histogram has either buckets or foreign_buckets, and nothing else has them`},
		{pause, "buckets: [0.5]", "buckets: [0.5]\n    foreign_buckets: true", `spec/metrics/pause.yaml:5: go.pause.duration: a histogram has either buckets or foreign_buckets, and nothing else has them`},
		{power, "unit: W", "unit: W\n    foreign_buckets: true", `spec/metrics/power.yaml:6: gpu.power.draw: a histogram has either buckets or foreign_buckets, and nothing else has them`},
		{pause, "[0.5]", "[0.5, 0.25]", `spec/metrics/pause.yaml:5: go.pause.duration: bucket 0.25 does not rise`},
		{pause, "[0.5]", "[0.5, 0.5]", `spec/metrics/pause.yaml:5: go.pause.duration: bucket 0.5 does not rise`},
		{pause, "[0.5]", "[0.5, 2]", `spec/metrics/pause.yaml:5: go.pause.duration: bucket 2 is whole: a push writes le="2" and a scrape le="2.0"`},
		{pause, "[0.5]", "[0.00005, 0.5]", `spec/metrics/pause.yaml:5: go.pause.duration: bucket 5e-05 is outside [1e-4, 1e6), where text and push write it differently`},
		{pause, "[0.5]", "[0.5, 1000000.5]", `spec/metrics/pause.yaml:5: go.pause.duration: bucket 1.0000005e+06 is outside [1e-4, 1e6), where text and push write it differently`},
		{pause, "[0.5]", "[.nan]", `spec/metrics/pause.yaml:5: go.pause.duration: bucket NaN is outside [1e-4, 1e6), where text and push write it differently`},
		// Attributes.
		{power, "[gpu.limit.type]", "[gpu.uuid]", `spec/metrics/power.yaml:20: gpu.power.limit: every series of scope device carries gpu.uuid already
spec/metrics/power.yaml:26: gpu.power.limit: source driver: fields wants exactly one enum attribute`},
		{attributes, "type: enum", "type: string", `spec/attributes.yaml:19: gpu.limit.type: members belong to an enum, and an enum needs them
spec/metrics/power.yaml:26: gpu.power.limit: source driver: fields wants exactly one enum attribute`},
		{attributes, "type: int", "type: enum", `spec/attributes.yaml:8: gpu.index: members belong to an enum, and an enum needs them`},
		{events, "gpu.owner, gpu.engine]", "gpu.ownr, gpu.engine]", `spec/metrics/events.yaml:5: gpu.events: attribute "gpu.ownr" is not in spec/attributes.yaml; did you mean "gpu.owner"?`},
		{scopes, "[gpu.uuid, gpu.index]", "[gpu.uuid]", `spec/attributes.yaml:8: gpu.index: no metric has this attribute`},
		{attributes, "renamed_to: gpu.uuid", "renamed_to: gpu.uid", `spec/attributes.yaml:49: gpu.owner: renamed_to "gpu.uid" is no other attribute; did you mean "gpu.uuid"?`},
		// Sources.
		{power, "inside: {}", "insid: {}", `spec/metrics/power.yaml:15: gpu.power.draw: source insid: is not in spec/sources.yaml; did you mean "inside"?`},
		{demo, "page: {metric: wait_milliseconds, scale: 0.001}", "inside: {}", `spec/sources.yaml:8: source page: no metric names it`},
		{power, "inside: {}", "inside: {call: Get}", `spec/metrics/power.yaml:15: gpu.power.draw: source inside: it has no key "call"`},
		{power, "tool: {file:", "tool: {call:", `spec/metrics/power.yaml:14: gpu.power.draw: source tool: it has no key "call"`},
		{power, "tool: {file: hwmon/power1_average, ", "tool: {", `spec/metrics/power.yaml:14: gpu.power.draw: source tool: wants exactly one of file, column`},
		{power, "tool: {file:", "tool: {column: X, file:", `spec/metrics/power.yaml:14: gpu.power.draw: source tool: wants exactly one of file, column`},
		{power, "scale: 1e-6", "scale: -1", `spec/metrics/power.yaml:14: gpu.power.draw: source tool: scale -1 is no positive number`},
		{power, "scale: 1e-6", "scale: .inf", `spec/metrics/power.yaml:14: gpu.power.draw: source tool: scale +Inf is no positive number`},
		{pause, "      inside: {}", "      driver: {field: 7}\n      inside: {}", `spec/metrics/pause.yaml:11: go.pause.duration: source driver: a field is one number, and no histogram`},
		{events, "event: Happened", "field: 5", `spec/metrics/events.yaml:11: gpu.events: source driver: field reads one number, and the metric has attributes; write fields`},
		{events, "event: Happened", "fields: {encoder: 5}", `spec/metrics/events.yaml:11: gpu.events: source driver: fields wants exactly one enum attribute`},
		{power, "min: 187", "mni: 187", `spec/metrics/power.yaml:29: gpu.power.limit: source driver: "mni" is no member of gpu.limit.type; did you mean "min"?`},
		{power, "min: 187", "hw_max: 1\n          min: 187", `spec/metrics/power.yaml:26: gpu.power.limit: source driver: fields give every member, so call reads none`},
		{power, "min: 187", "min: []", `spec/metrics/power.yaml:29: gpu.power.limit: source driver: min has no number`},
		{power, "driver: <590", "driver: 590 up", `spec/metrics/power.yaml:30: gpu.power.limit: source driver: max: driver range "590 up" is none of "575-589", ">=590", "<575"`},
		{power, "driver: <590", "driver: 589-600", `spec/metrics/power.yaml:30: gpu.power.limit: source driver: max: driver range ">=590" meets another`},
		{power, "driver: 500-589", "driver: 400-589", `spec/metrics/power.yaml:13: gpu.power.draw: source driver: field: driver range "400-589" meets another`},
		{power, "id: 188", "id: 188, link: bus", `spec/metrics/power.yaml:30: gpu.power.limit: source driver: max: link: the scope device has no sorts of link`},
		{power, "id: 188", "id: 188, instead: true", `spec/metrics/power.yaml:30: gpu.power.limit: source driver: max: the first number is read instead of none`},
		{power, "id: 188", "id: 188, scale: -1", `spec/metrics/power.yaml:30: gpu.power.limit: source driver: max: scale -1 is no positive number`},
		{links, "link: bus, ", "", `spec/metrics/links.yaml:10: gpu.link.io: source driver: field: wants link: which sort of link has it`},
		{links, "link: bus", "link: buss", `spec/metrics/links.yaml:10: gpu.link.io: source driver: field: "buss" is no member of gpu.link.type; did you mean "bus"?`},
		{links, ", instead: true", "", `spec/metrics/links.yaml:10: gpu.link.io: source driver: field: driver range "" meets another`},
		{links, "as: errorRate", "as: error-rate", `spec/metrics/links.yaml:17: gpu.link.quality: source driver: encoder: as: "error-rate" is no name of a function`},
		{feeling, "[calm, cross]", "[calm, crss]", `spec/metrics/feeling.yaml:11: gpu.mood: source driver: "crss" is no member of gpu.mood; did you mean "cross"?`},
		{feeling, "field: 230,", "event: Mood,", `spec/metrics/feeling.yaml:11: gpu.mood: source driver: states wants a field and exactly one enum attribute`},
		// Twins and deprecations.
		{power, "{name: hw.power,", "{name: HW power,", `spec/metrics/power.yaml:16: gpu.power.draw: semconv: "HW power" is no OpenTelemetry name`},
		{power, "{hw.type: gpu}", "{hw type: gpu}", `spec/metrics/power.yaml:16: gpu.power.draw: semconv: "hw type" is no OpenTelemetry name`},
		{events, "renamed_to: gpu.events", "renamed_to: gpu.happened", `spec/metrics/events.yaml:18: gpu.events.lost: renamed_to "gpu.happened" is no other metric`},
		{events, "renamed_to: gpu.events", "renamed_to: gpu.events.lost", `spec/metrics/events.yaml:18: gpu.events.lost: renamed_to "gpu.events.lost" is no other metric`},
		// Groups.
		{power, "scopes: [device]", "scopes: [devise]", `spec/metrics/power.yaml:1: group power: scope "devise" is not in spec/scopes.yaml; did you mean "device"?`},
	} {
		refused(t, x.new, x.want, edit{x.file, x.old, x.new})
	}
}

// Files of their own names: what a group is called, and the Go names made of it.
func TestGroupNames(t *testing.T) {
	for name, want := range map[string]string{
		"device":         `spec/metrics/device.yaml:1: group device: its Go name Device is that of scope device`,
		"Electric":       `spec/metrics/Electric.yaml:1: group "Electric": a name is lower-case words joined by dashes`,
		"engine":         `spec/metrics/engine.yaml:1: group engine: its Go name Engine is that of gpu.engine`,
		"limit-type-min": `spec/metrics/limit-type-min.yaml:1: group limit-type-min: its Go name LimitTypeMin is that of gpu.limit.type min`,
		"self-families":  `spec/metrics/self-families.yaml:1: group self-families: its Go name SelfFamilies is that of scope self`,
	} {
		root := gentest.Sample()
		text := strings.Replace(string(root[pause].Data), "group: pause", "group: "+name, 1)
		delete(root, pause)
		root["metrics/"+name+".yaml"] = &fstest.MapFile{Data: []byte(text)}
		refusedRoot(t, name, want, root)
	}
}

// At most 14 labels, those of the scope among them.
func TestLabels(t *testing.T) {
	root := gentest.Sample()
	var keys []string
	for i := range 13 {
		key := fmt.Sprintf("gpu.more%d", i)
		keys = append(keys, key)
		root[attributes].Data = fmt.Appendf(root[attributes].Data,
			"  - {key: %s, brief: One more., type: string, from: Nowhere., cardinality: open}\n", key)
	}
	text := string(root[power].Data)
	change := func(n int) {
		root[power].Data = []byte(strings.Replace(text, "    unit: W\n", "    unit: W\n    attributes: ["+strings.Join(keys[:n], ", ")+"]\n", 1))
	}
	change(13)
	refusedRoot(t, "15 labels", `spec/metrics/power.yaml:6: gpu.power.draw: 15 labels; at most 14
spec/metrics/power.yaml:14: gpu.power.draw: source driver: field reads one number, and the metric has attributes; write fields`, root)
	change(12)
	refusedRoot(t, "14 labels", `spec/attributes.yaml:98: gpu.more12: no metric has this attribute
spec/metrics/power.yaml:14: gpu.power.draw: source driver: field reads one number, and the metric has attributes; write fields`, root)
}
