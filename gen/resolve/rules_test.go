package resolve_test

import (
	"testing"
)

const rules, sharedRules = "rules/demo.yaml", "rules/shared.yaml"

// What is wrong with a rule is told with its file and line, and why.
func TestRulePolicies(t *testing.T) {
	const demoAlert = "spec/rules/demo.yaml:12: alert GPUDrawsMuch: "
	const lost = "spec/rules/demo.yaml:23: alert EventsAreLost: "
	for _, x := range []struct{ file, old, new, want string }{
		// What is not there.
		{rules, "expr: gpu:gpu_power_draw:avg5m", "expr: gpu:gpu_power_darw:avg5m", demoAlert + `no metric or recording rule gpu:gpu_power_darw:avg5m`},
		{sharedRules, "gpu_power_draw_watts[5m]", "gpu_power_drawn_watts[5m]", `spec/rules/shared.yaml:8: rule gpu:gpu_power_draw:avg5m: no metric or recording rule gpu_power_drawn_watts`},
		{rules, "gpu_code=~", "gpu_coed=~", demoAlert + `while: gpu_events_total has no label gpu_coed`},
		{rules, "> config:drawWatts", "> config:drawWatt", `spec/rules/demo.yaml:5: setting drawWatts: nothing uses it
` + demoAlert + `no setting "drawWatt" under config; did you mean "drawWatts"?`},
		{rules, "for: drawFor", "for: drawfor", `spec/rules/demo.yaml:6: setting drawFor: nothing uses it
` + demoAlert + `for: no duration "drawfor" under config; did you mean "drawFor"?`},
		{rules, "for: drawFor", "for: drawWatts", `spec/rules/demo.yaml:6: setting drawFor: nothing uses it
` + demoAlert + `for: no duration "drawWatts" under config; did you mean "drawWatts"?`},
		{rules, "$labels.k8s_pod_name", "$labels.pod_name", demoAlert + `description: the expression has no label pod_name`},
		{rules, "Events of {{ $labels.cluster }}", "Events of {{ $labels.instance }}", lost + `summary: the expression has no label instance`},
		{events, "sources:\n      tool: {column: Lost}", "sources: {}", lost + `nobody reads gpu_events_lost_total yet: it would never say anything`},
		// What makes no sense.
		{rules, "> config:drawWatts", "> > 3", `spec/rules/demo.yaml:5: setting drawWatts: nothing uses it
` + demoAlert + `1:28: parse error: unexpected <op:>>`},
		{rules, "increase(gpu_events_total{gpu_code=~\"config:codes\"}[5m])", "max_over_time(gpu_events_total{gpu_code=~\"config:codes\"}[5m])", demoAlert + `while: gpu_events_total only ever rises; wants rate or increase`},
		{sharedRules, "avg_over_time(gpu_power_draw_watts[5m])", "rate(gpu_power_draw_watts[5m])", `spec/rules/shared.yaml:8: rule gpu:gpu_power_draw:avg5m: rate of gpu_power_draw_watts, which rises and falls`},
		{sharedRules, "avg by (cluster, instance, gpu_uuid) (avg_over_time(gpu_power_draw_watts[5m]))", "sum by (cluster, instance, gpu_uuid) (gpu_power_limit_watts)", `spec/rules/shared.yaml:8: rule gpu:gpu_power_draw:avg5m: a sum of gpu_power_limit_watts over gpu_limit_type means nothing: its values overlap`},
		{sharedRules, "avg by (cluster, instance, gpu_uuid) (avg_over_time(gpu_power_draw_watts[5m]))", "sum by (cluster, gpu_host) (gpu_power_draw_watts)", demoAlert + `an alert about a device is aggregated by (cluster, instance, gpu_uuid) and nothing else, not (cluster, gpu_host): else a pod that comes or goes resets its time
` + demoAlert + `summary: the expression has no label gpu_uuid
spec/rules/shared.yaml:8: rule gpu:gpu_power_draw:avg5m: by gpu_host: no series there has that label`},
		{sharedRules, "avg by (cluster, instance, gpu_uuid)", "avg by (cluster, instance, gpu_uuid, gpu_index)", demoAlert + `an alert about a device is aggregated by (cluster, instance, gpu_uuid) and nothing else, not (cluster, gpu_index, gpu_uuid, instance): else a pod that comes or goes resets its time`},
		{rules, "about: fleet\n", "about: fleet\n        while: gpu_power_draw_watts > 1\n", lost + `while belongs to an alert about a device; write it into the expression`},
		{rules, "about: fleet\n", "about: fleet\n        victims: gpu_power_draw_watts\n", lost + `victims belong to an alert about a device`},
		{rules, "        while: sum by", "        victims: gpu_power_draw_wats\n        while: sum by", demoAlert + `victims: no metric or recording rule gpu_power_draw_wats`},
		{rules, "        while: sum by", "        victims: gpu_power_draw_watts\n        while: sum by", demoAlert + `victims: the expression lacks labels of devices or of workloads`},
		{rules, "about: fleet\n", "about: engine\n", lost + `wants over: the labels by which its time is held`},
		{rules, "about: fleet\n", "about: fleet\n        over: [cluster]\n", lost + `over belongs to an alert about a workload or an engine`},
		{rules, "about: fleet\n", "about: engine\n        over: [cluster, instance]\n", lost + `over: the expression has no label instance`},
		{rules, "about: fleet\n", "about: workload\n        over: [k8s_pod_name]\n", lost + `over: the expression has no label k8s_pod_name
` + lost + `over: k8s_pod_name comes and goes, which would reset its time`},
		{rules, "about: fleet\n        expr: sum by (cluster) (rate(gpu_events_lost_total[5m])) > 0\n", "about: engine\n        over: [cluster]\n        expr: sum by (cluster) (rate(gpu_events_lost_total[5m]))\n", lost + `over: the expression is no comparison with a number, such as x > config:y`},
		// Names, settings and texts.
		{sharedRules, "record: gpu:gpu_power_draw:avg5m", "record: gpu_power", `spec/compat/l9gpu.yaml:24: load_percent: there is no recording rule gpu:gpu_power_draw:avg5m
` + demoAlert + `no metric or recording rule gpu:gpu_power_draw:avg5m
spec/rules/shared.yaml:8: rule gpu_power: a name is level:metric:operation`},
		{rules, "alert: EventsAreLost", "alert: events_are_lost", `spec/rules/demo.yaml:23: alert events_are_lost: a name is words in CamelCase`},
		{rules, "alert: EventsAreLost", "alert: GPUDrawsMuch", `spec/rules/demo.yaml:23: alert GPUDrawsMuch: is there twice, first at spec/rules/demo.yaml:12`},
		{rules, "{number: 650,", "{number: 650, duration: 5m,", `spec/rules/demo.yaml:5: setting drawWatts: wants exactly one of number, duration and text: its default`},
		{rules, "{number: 650,", "{", `spec/rules/demo.yaml:5: setting drawWatts: wants exactly one of number, duration and text: its default`},
		{rules, "{duration: 5m,", "{duration: soon,", `spec/rules/demo.yaml:6: setting drawFor: duration "soon" is no time such as 5m`},
		{rules, "drawWatts:", "draw_watts:", `spec/rules/demo.yaml:5: setting draw_watts: a name is one word in camelCase
spec/rules/demo.yaml:5: setting draw_watts: nothing uses it
` + demoAlert + `no setting "drawWatts" under config; did you mean "draw_watts"?`},
		{sharedRules, "every: 1m", "every: often", `spec/rules/shared.yaml:5: group power: every "often" is no time such as 1m`},
		{rules, "Look at the log.", "", lost + `empty runbook`},
		{rules, "brief: Events are lost.", "brief: Events are lost", `spec/rules/demo.yaml:23: alert EventsAreLost: a brief is a sentence and ends with a full stop`},
	} {
		refused(t, x.new, x.want, edit{x.file, x.old, x.new})
	}
}
