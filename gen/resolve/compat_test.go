package resolve_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpumeter/gpumeter/gen/gentest"
)

const dcgm, l9gpu = "compat/dcgm.yaml", "compat/l9gpu.yaml"

func TestCompat(t *testing.T) {
	type row struct{ there, prom, query string }
	want := []row{
		{"DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_POWER_USAGE", "gpu_power_draw_watts * 1000"},
		{"BOARD_POWER_WATTS", "BOARD_POWER_WATTS", "gpu_power_draw_watts"},
		{"MAX_LIMIT", "MAX_LIMIT", `gpu_power_limit_watts{gpu_limit_type="max"}`},
		{"EVENTS", "EVENTS", `sum without (gpu_owner, gpu_engine) (rate(gpu_events_total{gpu_code="7"}[2m])) * 3600`},
		{"LAST_EVENT", "LAST_EVENT", ""},
		{"PART_MIB", "PART_MIB", "gpu_partition_memory_usage_bytes / 1048576"},
		{"gpu.power.draw", "gpu_power_draw_watts", "gpu_power_draw_watts * 1000"},
		{"wait", "wait_milliseconds", "histogram_quantile(0.95, rate(gpumeter_wait_duration_seconds_bucket[2m])) * 1000"},
		{"wait.mean", "wait_mean_microseconds", `rate(gpumeter_wait_duration_seconds_sum{gpu_engine="encoder"}[2m]) / rate(gpumeter_wait_duration_seconds_count{gpu_engine="encoder"}[2m]) * 1000000`},
		{"load.percent", "load_percent", ""},
		{"gpu.index", "gpu_index", ""},
	}
	var got []row
	for _, c := range gentest.Model(t).Compats {
		for _, s := range c.Sections {
			for _, a := range s.Answers {
				for _, f := range a.There {
					got = append(got, row{f.Name, f.Prom, f.Query})
				}
			}
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Error(diff)
	}
}

func TestCompatPolicies(t *testing.T) {
	for _, x := range []struct{ file, old, new, want string }{
		// What is not there.
		{dcgm, "metric: gpu.power.draw", "metric: gpu.power.darw", `spec/compat/dcgm.yaml:22: DCGM_FI_DEV_POWER_USAGE: "gpu.power.darw" is no metric; did you mean "gpu.power.draw"?`},
		{dcgm, "{gpu.limit.type: max}", "{gpu.limit.typ: max}", `spec/compat/dcgm.yaml:29: MAX_LIMIT: gpu.power.limit has no attribute "gpu.limit.typ"; did you mean "gpu.limit.type"?`},
		{dcgm, "{gpu.limit.type: max}", "{gpu.limit.type: maxi}", `spec/compat/dcgm.yaml:29: MAX_LIMIT: gpu.limit.type has no member "maxi"; did you mean "max"?`},
		{dcgm, "over: [gpu.owner,", "over: [gpu.ower,", `spec/compat/dcgm.yaml:30: EVENTS: gpu.events has no attribute "gpu.ower"; did you mean "gpu.owner"?`},
		{dcgm, "attribute: gpu.index", "attribute: gpu.indx", `spec/compat/dcgm.yaml:10: gpu: attribute "gpu.indx" is not in spec/attributes.yaml; did you mean "gpu.index"?`},
		{dcgm, "{dialect: new, name: who}", "{dialect: nwe, name: who}", `spec/compat/dcgm.yaml:12: who: "nwe" is no dialect; did you mean "new"?`},
		{l9gpu, "from: [gpu.load,", "from: [gpu.laod,", `spec/compat/l9gpu.yaml:24: load_percent: "gpu.laod" is no metric; did you mean "gpu.load"?`},
		// One answer, of one sort, with what belongs to it.
		{dcgm, "        metric: gpu.power.draw\n", "", `spec/compat/dcgm.yaml:22: DCGM_FI_DEV_POWER_USAGE: wants exactly one of metric, rule, attribute, label, planned and none, has 0`},
		{dcgm, "    none: It never knew | either.", "    none: It never knew | either.\n    planned: Soon.", `spec/compat/dcgm.yaml:15: where: wants exactly one of metric, rule, attribute, label, planned and none, has 2`},
		{dcgm, "    none: It never knew | either.", "    none: It never knew | either.\n    as: rate", `spec/compat/dcgm.yaml:15: where: attributes, as and over belong to a metric`},
		{l9gpu, "planned: It comes", "from: [gpu.load]\n        planned: It comes", `spec/compat/l9gpu.yaml:28: soon: from belongs to a rule`},
		{l9gpu, "gpu:gpu_power_draw:avg5m", "gpu_power_draw:avg5m", `spec/compat/l9gpu.yaml:24: load_percent: rule "gpu_power_draw:avg5m" is not level:metric:operation`},
		{l9gpu, "gpu:gpu_power_draw:avg5m", "gpu:gpu_power_draw:avg1m", `spec/compat/l9gpu.yaml:24: load_percent: there is no recording rule gpu:gpu_power_draw:avg1m; did you mean "gpu:gpu_power_draw:avg5m"?`},
		{l9gpu, "planned: They come one by one.", "note: They come.", `spec/compat/l9gpu.yaml:34: the rest of Device: wants exactly one of planned and none`},
		{dcgm, "none: It is not the device's.", "none: It is not the device's", `spec/compat/dcgm.yaml:44: the rest of Licences: a brief is a sentence and ends with a full stop`},
		{l9gpu, "- fields: [soon]\n        planned", "- planned", `spec/compat/l9gpu.yaml:28: section Device: an answer wants fields or names there`},
		{dcgm, "    rest:\n      none: It is not the device's.\n      note: Ask who sold it.\n", "", `spec/compat/dcgm.yaml:41: section Licences: no answers and no rest`},
		// What can be read of a metric.
		{dcgm, "as: rate", "as: mean", `spec/compat/dcgm.yaml:30: EVENTS: the mean of gpu.events, which is no histogram`},
		{dcgm, "metric: gpu.events.lost\n        as: differs\n        note: There the last one only.", "metric: gpu.power.limit\n        as: rate", `spec/compat/dcgm.yaml:35: LAST_EVENT: the rate of gpu.power.limit, which is no counter`},
		{dcgm, "        note: There the last one only.\n", "", `spec/compat/dcgm.yaml:35: LAST_EVENT: differs, and no note says how`},
		{l9gpu, "        as: p95\n", "", `spec/compat/l9gpu.yaml:15: wait_p95: gpumeter.wait.duration is a histogram; say what of it`},
		{l9gpu, "as: p95", "as: p95\n        over: [gpu.engine]", `spec/compat/l9gpu.yaml:15: wait_p95: a sum over quantiles or means of gpumeter.wait.duration means nothing`},
		{dcgm, "attributes: {gpu.limit.type: max}", "over: [gpu.limit.type]", `spec/compat/dcgm.yaml:27: MAX_LIMIT: a sum over gpu.limit.type means nothing`},
		{dcgm, "scale: 3600", "scale: -3600", `spec/compat/dcgm.yaml:30: EVENTS: scale -3600 is no positive number`},
		// Once.
		{l9gpu, "[wait_p95]", "[draw]", `spec/compat/l9gpu.yaml:15: draw: is answered twice, first at spec/compat/l9gpu.yaml:12`},
		{dcgm, "[{name: where}]", "[{dialect: new, name: who}]", `spec/compat/dcgm.yaml:15: who: is answered twice, first at spec/compat/dcgm.yaml:12`},
		{dcgm, "name: Licences", "name: Power and events", `spec/compat/dcgm.yaml:41: section Power and events is there twice, first at spec/compat/dcgm.yaml:18`},
		{dcgm, "{name: new, brief: After.}", "{name: new, brief: After.}\n  - {name: old, brief: Long after.}", `spec/compat/dcgm.yaml:9: dialect old is there twice`},
		// The rules made of it.
		{dcgm, "devices: gpu.power.draw", "devices: gpu.power.drwa", `spec/compat/dcgm.yaml:47: rules: "gpu.power.drwa" is no metric; did you mean "gpu.power.draw"?`},
		{dcgm, "{name: gpu}", "{name: gpu, after: gpu.ower}", `spec/compat/dcgm.yaml:10: gpu: after: "gpu.ower" is not in spec/attributes.yaml; did you mean "gpu.owner"?`},
		{dcgm, "    brief: What nobody reads.\n", "    brief: What nobody reads.\n    answers:\n      - there: [{name: DCGM_FI_DEV_POWER_USAGE}]\n        metric: gpu.power.draw\n", `spec/compat/dcgm.yaml:44: DCGM_FI_DEV_POWER_USAGE: another answer gives DCGM_FI_DEV_POWER_USAGE too, and another number`},
		// What the metrics say of others.
		{power, "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_POWER", `spec/compat/dcgm.yaml:22: DCGM_FI_DEV_POWER_USAGE: is answered with gpu.power.draw, whose was does not name it; add {system: dcgm, name: DCGM_FI_DEV_POWER_USAGE} there
spec/metrics/power.yaml:18: gpu.power.draw: was dcgm DCGM_FI_DEV_POWER, and spec/compat/dcgm.yaml has no such name`},
		{power, "DCGM_FI_DEV_POWER_USAGE}", "DCGM_FI_DEV_POWER_USAGE}\n      - {system: dcgm, name: LAST_EVENT}", `spec/metrics/power.yaml:19: gpu.power.draw: was dcgm LAST_EVENT, and spec/compat/dcgm.yaml answers it with gpu.events.lost`},
		{power, "name: gpu.power.draw, note", "name: gpu.index, note", `spec/compat/l9gpu.yaml:12: draw: is answered with gpu.power.draw, whose was does not name it; add {system: l9gpu, name: gpu.power.draw} there
spec/metrics/power.yaml:19: gpu.power.draw: was l9gpu gpu.index, and spec/compat/l9gpu.yaml answers it with no metric`},
	} {
		refused(t, x.new, x.want, edit{x.file, x.old, x.new})
	}
}
