package resolve_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpumeter/gpumeter/gen/gentest"
	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

func TestSample(t *testing.T) {
	m := gentest.Model(t)
	type name struct {
		scope, otel, prom, unit, field string
		closed, optIn                  bool
		labels                         int
	}
	var got []name
	for _, x := range m.Metrics {
		got = append(got, name{x.Scope.Name, x.Name, x.Prom, x.PromUnit, x.Group.GoName + "." + x.GoField, x.Closed(), x.OptIn(), len(x.Labels())})
	}
	want := []name{
		{"device", "gpu.events", "gpu_events_total", "", "Events.Events", false, false, 5},
		{"device", "gpu.events.lost", "gpu_events_lost_total", "", "Events.Lost", true, false, 2},
		{"device", "gpu.events.asking", "gpu_events_asking_total", "", "Events.Asking", true, false, 3},
		{"device", "gpu.mood", "gpu_mood", "", "Feeling.Mood", true, false, 3},
		{"device", "gpu.alarm", "gpu_alarm", "", "Feeling.Alarm", true, false, 2},
		{"device", "gpu.utilization", "gpu_utilization_ratio", "ratio", "Feeling.Utilization", true, false, 2},
		{"device", "gpu.health.penalty", "gpu_health_penalty_ratio", "ratio", "Feeling.HealthPenalty", true, false, 3},
		{"device", "gpu.power.draw", "gpu_power_draw_watts", "watts", "Power.Draw", true, false, 2},
		{"device", "gpu.power.limit", "gpu_power_limit_watts", "watts", "Power.Limit", true, false, 3},
		{"device", "gpu.memory.usage", "gpu_memory_usage_bytes", "bytes", "Shared.MemoryUsage", true, false, 2},
		{"device", "gpu.load", "gpu_load_ratio", "ratio", "Shared.Load", true, false, 4},
		{"partition", "gpu.partition.memory.usage", "gpu_partition_memory_usage_bytes", "bytes", "Shared.MemoryUsage", true, false, 3},
		{"partition", "gpu.partition.load", "gpu_partition_load_ratio", "ratio", "Shared.Load", true, false, 5},
		{"self", "gpumeter.build.info", "gpumeter_build_info", "", "EngineDemo.BuildInfo", false, false, 1},
		{"self", "gpumeter.wait.duration", "gpumeter_wait_duration_seconds", "seconds", "EngineDemo.WaitDuration", false, true, 2},
		{"self", "go.pause.duration", "go_pause_duration_seconds", "seconds", "Pause.Duration", false, false, 0},
		{"link", "gpu.link.io", "gpu_link_io_bytes_total", "bytes", "Links.Io", true, false, 3},
		{"link", "gpu.link.quality", "gpu_link_quality_ratio", "ratio", "Links.Quality", true, false, 4},
		{"link", "gpu.link.width", "gpu_link_width", "", "Links.Width", true, false, 3},
		{"link", "gpu.link.width.limit", "gpu_link_width_limit", "", "Links.WidthLimit", true, false, 3},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(name{})); diff != "" {
		t.Error(diff)
	}
	load := m.Scopes[1].Metrics[1]
	if all := load.Everywhere(); len(all) != 2 || all[0].Name != "gpu.load" || all[1] != load {
		t.Errorf("Everywhere: %v", all)
	}
	if diff := cmp.Diff([]string{"gpu_uuid", "gpu_index", "gpu_slice", "gpu_limit_type", "gpu_engine"}, load.Labels()); diff != "" {
		t.Error(diff)
	}
	limit, driver := m.Attributes[3], m.Sources[0]
	if limit.MemberName(2) != "LimitTypeHWMax" || limit.IsAdditive() || !m.Attributes[4].IsAdditive() || limit.Label != "gpu_limit_type" {
		t.Errorf("attribute %+v", limit)
	}
	if len(driver.Metrics) != 12 {
		t.Errorf("source driver reads %d metrics", len(driver.Metrics))
	}
	if diff := cmp.Diff([]string{"x_seconds", "x_seconds_bucket", "x_seconds_sum", "x_seconds_count"},
		(&resolve.Metric{Metric: schema.Metric{Instrument: "histogram"}, Prom: "x_seconds"}).SeriesNames()); diff != "" {
		t.Error(diff)
	}
}

// refused fails unless the changed sample is refused with exactly these lines.
func refused(t *testing.T, what, want string, edits ...edit) {
	t.Helper()
	root := gentest.Sample()
	for _, e := range edits {
		text := string(root[e.file].Data)
		if !strings.Contains(text, e.old) {
			t.Fatalf("%s does not contain %q", e.file, e.old)
		}
		root[e.file].Data = []byte(strings.Replace(text, e.old, e.new, 1))
	}
	refusedRoot(t, what, want, root)
}

func refusedRoot(t *testing.T, what, want string, root fs.FS) {
	t.Helper()
	spec, err := schema.Load(root)
	if err != nil {
		t.Errorf("%s: does not load: %v", what, err)
		return
	}
	if _, err = resolve.Resolve(spec); err == nil {
		t.Errorf("%s: no fault; want %s", what, want)
	} else if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

type edit struct{ file, old, new string }

// Faults of several files come at once.
func TestAllAtOnce(t *testing.T) {
	refused(t, "several", `spec/attributes.yaml:2: gpu.uuid: empty brief
spec/metrics/events.yaml:5: gpu.events: unit "ms" is not a base unit; write "s" and a scale
spec/metrics/power.yaml:6: gpu.power.draw: a brief is a sentence and ends with a full stop
spec/metrics/power.yaml:20: gpu.power.limit: attribute "gpu.limit.typ" is not in spec/attributes.yaml; did you mean "gpu.limit.type"?
spec/sources.yaml:2: source driver: a brief is a sentence and ends with a full stop`,
		edit{"attributes.yaml", "brief: The name nothing else has.", `brief: ""`},
		edit{"metrics/events.yaml", `unit: "{event}"`, "unit: ms"},
		edit{"metrics/power.yaml", "a second ago.", "a second ago"},
		edit{"metrics/power.yaml", "[gpu.limit.type]", "[gpu.limit.typ]"},
		edit{"sources.yaml", "numbered fields.", "numbered fields"},
	)
}

func TestDriverRange(t *testing.T) {
	for text, want := range map[string][2]int{
		"": {0, 0}, "575-589": {575, 589}, ">=590": {590, 0}, "<575": {0, 574}, "590-590": {590, 590},
	} {
		first, last, err := resolve.DriverRange(text)
		if err != nil || first != want[0] || last != want[1] {
			t.Errorf("%q: %d to %d, %v", text, first, last, err)
		}
	}
	for text, want := range map[string]string{
		"590":      `driver range "590" is none of "575-589", ">=590", "<575"`,
		">590":     `driver range ">590" is none of "575-589", ">=590", "<575"`,
		"590-575":  `driver range "590-575" is empty`,
		"<1":       `driver range "<1" is empty`,
		"0-0":      `driver range "0-0" is empty`,
		"<9999999": `driver range "<9999999" is none of "575-589", ">=590", "<575"`,
	} {
		if _, _, err := resolve.DriverRange(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzResolve resolves whatever loads: a model or faults, never a panic.
func FuzzResolve(f *testing.F) {
	for name, file := range gentest.Sample() {
		f.Add(name, string(file.Data))
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		root := gentest.Sample()
		if root[name] == nil {
			return
		}
		root[name].Data = []byte(text)
		spec, err := schema.Load(root)
		if err != nil {
			return
		}
		if model, err := resolve.Resolve(spec); (model == nil) == (err == nil) {
			t.Errorf("model %v and error %v", model, err)
		}
	})
}
