package resolve

import (
	"maps"
	"slices"

	"github.com/gpumeter/gpumeter/spell"
)

// OfficialVersion is the version of the OpenTelemetry semantic conventions the tables below were
// read from: the YAML under model/ of github.com/open-telemetry/semantic-conventions at its tag.
// A test in test/semconv holds what is emitted from them against a longer list of the same data.
const OfficialVersion = "1.44.0"

// officialMetrics are the metrics a twin may name, and the attributes each requires. Those of
// gen_ai have since moved to a registry of their own.
var officialMetrics = map[string][]string{
	"gen_ai.client.operation.duration":    {"gen_ai.operation.name", "gen_ai.provider.name"},
	"gen_ai.client.token.usage":           {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.token.type"},
	"gen_ai.server.request.duration":      {"gen_ai.operation.name", "gen_ai.provider.name"},
	"gen_ai.server.time_per_output_token": {"gen_ai.operation.name", "gen_ai.provider.name"},
	"gen_ai.server.time_to_first_token":   {"gen_ai.operation.name", "gen_ai.provider.name"},
	"hw.energy":                           {"hw.id", "hw.type"},
	"hw.errors":                           {"hw.id", "hw.type"},
	"hw.fan.speed":                        {"hw.id"},
	"hw.fan.speed_ratio":                  {"hw.id"},
	"hw.gpu.io":                           {"hw.id", "network.io.direction"},
	"hw.gpu.memory.limit":                 {"hw.id"},
	"hw.gpu.memory.usage":                 {"hw.id"},
	"hw.gpu.memory.utilization":           {"hw.id"},
	"hw.gpu.utilization":                  {"hw.id"},
	"hw.host.energy":                      {"hw.id"},
	"hw.host.power":                       {"hw.id"},
	"hw.network.io":                       {"hw.id", "network.io.direction"},
	"hw.network.packets":                  {"hw.id", "network.io.direction"},
	"hw.network.up":                       {"hw.id"},
	"hw.power":                            {"hw.id", "hw.type"},
	"hw.status":                           {"hw.id", "hw.state", "hw.type"},
	"hw.temperature":                      {"hw.id"},
	"hw.temperature.limit":                {"hw.id"},
	"hw.voltage":                          {"hw.id"},
	"process.cpu.time":                    {"cpu.mode"},
	"process.memory.usage":                {},
	"system.cpu.logical.count":            {},
	"system.cpu.physical.count":           {},
	"system.cpu.time":                     {},
	"system.memory.limit":                 {},
	"system.memory.linux.available":       {},
	"system.memory.usage":                 {},
	"system.uptime":                       {},
}

// officialAttributes are the keys that spec/attributes.yaml uses as OpenTelemetry defines them.
var officialAttributes = []string{
	"cloud.availability_zone", "cloud.region",
	"container.id", "container.image.name", "container.name", "cpu.mode", "error.type", "host.name", "host.type",
	"k8s.cluster.name", "k8s.container.name", "k8s.namespace.name", "k8s.node.name", "k8s.pod.name", "k8s.pod.uid",
	"network.io.direction", "process.command", "process.executable.name", "process.owner", "process.pid", "process.user.name",
	"server.address", "server.port", "service.instance.id", "service.name", "system.memory.state",
}

// Counterpart is an official attribute that a twin makes of one of ours.
type Counterpart struct {
	Key    string            // of the official attribute
	Values map[string]string // what it calls a member of ours, where it has another word
}

// counterparts says, by our key, which official attributes a twin's series have from ours. What is
// not named here goes along under our own key, so that no two series of a twin become one.
var counterparts = map[string][]Counterpart{
	"gpu.uuid":             {{Key: "hw.id"}},
	"gpu.vendor":           {{Key: "hw.vendor"}},
	"gpu.model":            {{Key: "hw.name"}, {Key: "hw.model"}},
	"gpu.serial":           {{Key: "hw.serial_number"}},
	"gpu.driver.version":   {{Key: "hw.driver_version"}},
	"gpu.firmware.version": {{Key: "hw.firmware_version"}},
	// A late device works, or is about to be lost: the official state has no word for hanging.
	"gpu.state":              {{Key: "hw.state", Values: map[string]string{"late": "degraded", "lost": "failed", "released": "degraded", "missing": "failed"}}},
	"gpu.ecc.error.type":     {{Key: "error.type"}},
	"gpu.xid":                {{Key: "error.type"}},
	"gpu.temperature.sensor": {{Key: "hw.sensor_location"}},
	"gpu.temperature.limit.type": {{Key: "hw.limit_type", Values: map[string]string{
		"shutdown": "high.critical", "slowdown": "high.degraded", "core_max": "throttled", "memory_max": "max",
	}}},
}

// Official says whether OpenTelemetry defines the attribute, so that we only refer to it.
func (a *Attribute) Official() bool { return slices.Contains(officialAttributes, a.Key) }

// Counterparts are the official attributes that a twin makes of this one.
func (a *Attribute) Counterparts() []Counterpart { return counterparts[a.Key] }

// Official says whether OpenTelemetry defines the metric, so that we only refine it.
func (m *Metric) Official() bool { return m.Semconv != nil && m.Semconv.Name == m.Name }

// checkTwin wants a twin that exists, with every attribute it requires given exactly once: by one
// of ours that is official or has a counterpart, or as a constant of the twin.
func (r *resolver) checkTwin(m *Metric) {
	t := m.Semconv
	if _, official := officialMetrics[m.Name]; official && !m.Official() {
		r.faults.Add(m.Pos, "%s: OpenTelemetry defines this metric; write semconv: {name: %s}", m.Name, m.Name)
	}
	if t == nil || len(m.Attributes) < len(m.Metric.Attributes) || len(m.Scope.Attributes) < len(m.Scope.Scope.Attributes) {
		return // no twin, or an attribute is unknown, which is fault enough
	}
	bad := func(format string, args ...any) {
		r.faults.Add(t.Pos, m.Name+": semconv: "+format, args...)
	}
	required, known := officialMetrics[t.Name]
	if !known {
		bad("%q is no official metric that gen/resolve knows%s", t.Name, spell.Suggest(t.Name, slices.Sorted(maps.Keys(officialMetrics))))
		return
	}
	given := map[string]string{} // by official key: what gives it
	give := func(key, by string) {
		if other, twice := given[key]; twice {
			bad("%s gives %s, and %s gives it already", by, key, other)
		}
		given[key] = by
	}
	for _, a := range slices.Concat(m.Scope.AllAttributes(), m.Attributes) {
		if a.Official() {
			give(a.Key, a.Key)
		}
		for _, c := range a.Counterparts() {
			give(c.Key, a.Key)
		}
	}
	for _, e := range t.Attributes {
		give(e.Key, "the twin")
	}
	for _, key := range required {
		if given[key] == "" {
			bad("%s requires %s; no attribute of ours gives it, so write it under the twin's attributes", t.Name, key)
		}
	}
}
