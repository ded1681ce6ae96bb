package resolve_test

import "testing"

const (
	board      = "dashboards/power.yaml"
	vocabulary = "vocabulary.yaml"
)

func TestDashboardPolicies(t *testing.T) {
	for _, x := range []struct{ file, old, new, want string }{
		// What is not there.
		{board, "sum(gpu_power_draw_watts)", "sum(gpu_power_drew_watts)", `spec/dashboards/power.yaml:16: panel "Draw": no metric or recording rule gpu_power_drew_watts`},
		{board, "topk(3, max by (gpu_uuid) (gpu_power_draw_watts))", "topk(3, max by (gpu_uid) (gpu_power_draw_watts))", `spec/dashboards/power.yaml:31: panel "By thing": by gpu_uid: no series there has that label`},
		{board, "[node, cluster, ", "[nod, cluster, ", `spec/dashboards/power.yaml:1: dashboard power: no variable "nod"; did you mean "node"?`},
		{board, "[event]", "[evnt]", `spec/dashboards/power.yaml:1: dashboard power: no annotation "evnt"; did you mean "event"?`},
		{board, "unit: hours", "unit: hour", `spec/dashboards/power.yaml:42: panel "Things": no unit "hour"; did you mean "hours"?`},
		{board, "unit: hours, ", "", `spec/dashboards/power.yaml:42: panel "Things": wants a unit: the expression does not tell it`},
		{board, "open: things", "open: thing", `spec/dashboards/power.yaml:23: panel "By thing": opens no dashboard "thing"; did you mean "things"?`},
		{board, "legend: \"{{gpu_uuid}}\"", "legend: \"{{gpu_id}}\"", `spec/dashboards/power.yaml:31: panel "By thing": the expression has no label gpu_id; did you mean "gpu_uuid"?`},
		{vocabulary, "  gpu_uuid: Thing\n", "", `spec/dashboards/power.yaml:41: panel "Things": the vocabulary has no head for the column gpu_uuid
spec/dashboards/power.yaml:42: panel "Things": the vocabulary has no head for the column gpu_uuid
spec/dashboards/power.yaml:43: panel "Things": the vocabulary has no head for the column gpu_uuid
spec/dashboards/power.yaml:44: panel "Things": the vocabulary has no head for the column gpu_uuid`},
		{vocabulary, "label: gpu_uuid, from", "label: gpu_id, from", `spec/vocabulary.yaml:4: variable thing: gpu_power_draw_watts has no label gpu_id; did you mean "gpu_uuid"?`},
		{vocabulary, "  watts: {id: watt, of: [W]}\n", "", `spec/dashboards/power.yaml:11: panel "Draw": the vocabulary does not say how "W" is shown
spec/dashboards/power.yaml:23: panel "By thing": the vocabulary does not say how "W" is shown
spec/dashboards/power.yaml:41: panel "Things": the vocabulary does not say how "W" is shown
spec/dashboards/things.yaml:10: panel "Draw": the vocabulary does not say how "W" is shown`},
		{board, "config:worth", "config:wort", `spec/dashboards/power.yaml:22: panel "Worth": no number "wort" is typed at the top; did you mean "worth"?`},
		{board, "index, worth]", "index]", `spec/dashboards/power.yaml:22: panel "Worth": no number "worth" is typed at the top`},
		// What makes no sense.
		{vocabulary, `default: "1.5"`, "default: much", `spec/vocabulary.yaml:6: variable worth: selects by no label, and its default "much" is no number`},
		{vocabulary, "label: gpu_index, typed: true", "label: gpu_index, from: gpu_power_draw_watts, typed: true", `spec/vocabulary.yaml:5: variable index: is typed, and needs no series to choose from`},
		{vocabulary, "from: gpu_power_draw_watts, brief: Things.", "from: gpu_power_draw_watts, default: all, brief: Things.", `spec/vocabulary.yaml:4: variable thing: only what is typed has a default`},
		{vocabulary, "from: gpu_power_draw_watts, brief: Things.", "brief: Things.", `spec/vocabulary.yaml:4: variable thing: no metric or recording rule `},
		{board, "stack: true", "stack: true\n        unit: ratio", `spec/dashboards/power.yaml:23: panel "By thing": is shown as ratio, and its numbers are in "W"`},
		{board, "uid: demo-power", "uid: demo-things", `spec/dashboards/things.yaml:1: dashboard things: uid demo-things is there twice, first at spec/dashboards/power.yaml:1`},
		{board, "uid: demo-power", "uid: Power", `spec/dashboards/power.yaml:1: dashboard power: uid "Power" is not 8 to 40 lower-case letters, digits and dashes`},
		{board, "brief: What each draws.", "brief: What each draws", `spec/dashboards/power.yaml:23: panel "By thing": a brief is a sentence and ends with a full stop`},
		{board, "since: 1h", "since: long", `spec/dashboards/power.yaml:1: dashboard power: since "long" is no time such as 6h`},
		{board, "{from: 600, is: bad}", "{from: 0, is: bad}", `spec/dashboards/power.yaml:11: panel "Draw": thresholds do not rise`},
		{board, "type: stat", "type: stat\n        stack: true\n        columns: [gpu_uuid]\n        width: 25", `spec/dashboards/power.yaml:11: panel "Draw": columns and sort belong to a table
spec/dashboards/power.yaml:11: panel "Draw": stack belongs to a timeseries
spec/dashboards/power.yaml:11: panel "Draw": width 25 of 24
spec/dashboards/power.yaml:11: panel "Draw": no query has the column gpu_uuid`},
		{board, "sort: Hours", "sort: Days", `spec/dashboards/power.yaml:35: panel "Things": sorted by no query called "Days"`},
		{board, "{name: Draw, expr", "{expr", `spec/dashboards/power.yaml:41: panel "Things": a query of a table has a name`},
		{board, "{expr: \"topk", "{name: Top, expr: \"topk", `spec/dashboards/power.yaml:31: panel "By thing": name and unit of a query belong to a table`},
		{board, "title: By thing", "title: Draw", `spec/dashboards/power.yaml:23: dashboard power: called as at spec/dashboards/power.yaml:11; another title gives it a number of its own`},
	} {
		refused(t, x.new, x.want, edit{x.file, x.old, x.new})
	}
}
