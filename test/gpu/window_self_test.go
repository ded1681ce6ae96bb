package gpu

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// steady are the samples of a GPU that draws 300 W, is busy for 40 % of the time and is held down by
// its power limit, with some changed: each is a page's line in which %v is replaced by the number
// that change makes of the seconds since the first sample.
func steady(t *testing.T, change map[string]func(seconds float64) any) []sample {
	t.Helper()
	const uuid = `gpu_uuid="GPU-1"`
	lines := map[string]func(seconds float64) any{
		`gpu_info{` + uuid + `} %v`:                                                                                        func(float64) any { return 1 },
		`gpu_power_draw_watts{` + uuid + `} %v`:                                                                            func(float64) any { return 300 },
		`gpu_energy_joules_total{` + uuid + `} %v`:                                                                         func(s float64) any { return 5e6 + 300*s },
		`gpu_utilization_ratio{` + uuid + `} %v`:                                                                           func(float64) any { return .4 },
		`gpu_busy_time_seconds_total{` + uuid + `} %v`:                                                                     func(s float64) any { return 7 + .4*s },
		`gpu_gr_engine_active_time_seconds_total{` + uuid + `} %v`:                                                         func(s float64) any { return 3 + .4*s },
		`gpu_throttle_reason{` + uuid + `,gpu_throttle_cause="sw_power_cap"} %v`:                                           func(float64) any { return 1 },
		`gpu_throttle_time_seconds_total{` + uuid + `,gpu_throttle_cause="sw_power_cap"} %v`:                               func(s float64) any { return 100 + s },
		`gpu_throttle_reason{` + uuid + `,gpu_throttle_cause="sw_thermal"} %v`:                                             func(float64) any { return 0 },
		`gpu_throttle_time_seconds_total{` + uuid + `,gpu_throttle_cause="sw_thermal"} %v`:                                 func(float64) any { return 9 },
		`gpu_memory_limit_bytes{` + uuid + `} %v`:                                                                          func(float64) any { return 100 },
		`gpu_memory_usage_bytes{` + uuid + `} %v`:                                                                          func(float64) any { return 50 },
		`gpu_memory_free_bytes{` + uuid + `} %v`:                                                                           func(float64) any { return 40 },
		`gpu_memory_reserved_bytes{` + uuid + `} %v`:                                                                       func(float64) any { return 10 },
		"# TYPE gpu_link_io_bytes_total counter\ngpu_link_io_bytes_total{" + uuid + `,network_io_direction="transmit"} %v`: func(s float64) any { return 10 * s },
		"# TYPE gpu_ecc_errors_total counter\ngpu_ecc_errors_total{" + uuid + `,gpu_ecc_error_type="corrected"} %v`:        func(float64) any { return 3 },
	}
	for name, to := range change {
		found := false
		for line := range lines {
			if strings.Contains(line, name+"{") || strings.Contains(line, name+`"`) && strings.Contains(line, "_time_") {
				lines[line], found = to, true
			}
		}
		if !found {
			t.Fatalf("no line has %s", name)
		}
	}
	var out []sample
	start := time.Now()
	for s := 0.; s <= 20; s++ {
		var text strings.Builder
		for line, at := range lines {
			if n := at(s); n != nil {
				fmt.Fprintf(&text, line+"\n", n)
			}
		}
		p, err := readPage(text.String())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, sample{start.Add(time.Duration(s * float64(time.Second))), 0, p})
	}
	return out
}

func constant(n float64) func(float64) any { return func(float64) any { return n } }
func times(n float64) func(float64) any    { return func(s float64) any { return n * s } }
func never(float64) any                    { return nil }

// Each check of the counters holds of a steady GPU, and is seen to fail.
func TestCounters(t *testing.T) {
	for _, c := range []struct {
		name   string
		change map[string]func(float64) any
		fails  string // the one check that does, by how its name begins
	}{
		{"steady", nil, ""},
		{"energy counts double", map[string]func(float64) any{"gpu_energy_joules_total": times(600)}, "energy"},
		{"energy stands still", map[string]func(float64) any{"gpu_energy_joules_total": constant(5e6)}, "energy"},
		{"no energy", map[string]func(float64) any{"gpu_energy_joules_total": never}, ""},
		{"busy for all the time", map[string]func(float64) any{"gpu_busy_time_seconds_total": times(1), "gpu_gr_engine_active_time_seconds_total": times(1)}, "busy time"},
		{"busy time in percent", map[string]func(float64) any{"gpu_utilization_ratio": constant(40)}, "busy time"},
		{"engine never active", map[string]func(float64) any{"gpu_gr_engine_active_time_seconds_total": constant(3)}, "engine"},
		{"throttled, and no time", map[string]func(float64) any{"sw_power_cap": constant(100)}, "time throttled by sw_power_cap"},
		{"time in microseconds", map[string]func(float64) any{"sw_power_cap": times(1e3)}, "time throttled by sw_power_cap"},
		{"not throttled, and time", map[string]func(float64) any{"sw_thermal": times(1)}, "time throttled by sw_thermal"},
		{"memory that does not add up", map[string]func(float64) any{"gpu_memory_free_bytes": constant(50)}, "memory"},
		{"a count that falls", map[string]func(float64) any{"gpu_ecc_errors_total": func(s float64) any { return max(3, 19-s) }}, "gpu_ecc_errors_total"},
	} {
		var failed []string
		for _, got := range counters(steady(t, c.change)) {
			if !got.ok {
				failed = append(failed, got.name)
			}
		}
		if c.fails == "" && failed != nil || c.fails != "" && (len(failed) != 1 || !strings.HasPrefix(failed[0], c.fails)) {
			t.Errorf("%s: what fails is %q, want %q", c.name, failed, c.fails)
		}
	}
}

// A load that nobody sees is one, and so is one that costs nothing.
func TestLoadedChecks(t *testing.T) {
	idle := steady(t, map[string]func(float64) any{"gpu_utilization_ratio": constant(0), "gpu_power_draw_watts": constant(80)})
	for _, c := range []struct {
		name   string
		change map[string]func(float64) any
		fails  int
	}{
		{"busy", map[string]func(float64) any{"gpu_utilization_ratio": constant(.99)}, 0},
		{"not busy", nil, 1},
		{"busy without power", map[string]func(float64) any{"gpu_utilization_ratio": constant(.99), "gpu_power_draw_watts": constant(79)}, 1},
		{"under MIG", map[string]func(float64) any{"gpu_utilization_ratio": never}, 0},
	} {
		n := 0
		for _, got := range loaded(idle, steady(t, c.change)) {
			if !got.ok {
				n++
			}
		}
		if n != c.fails {
			t.Errorf("%s: %d checks fail, want %d", c.name, n, c.fails)
		}
	}
}

// What cannot be checked is named with the metric it lacks, and passes as nothing else.
func TestUnchecked(t *testing.T) {
	samples := steady(t, map[string]func(float64) any{
		"gpu_energy_joules_total": never, "gpu_utilization_ratio": never, "gpu_memory_free_bytes": never, "gpu_power_draw_watts": never,
	})
	lacks := map[string]string{}
	for _, c := range append(counters(samples), loaded(samples, samples)...) {
		if c.lacks != "" {
			lacks[c.name] = c.lacks
		}
	}
	for name, metric := range map[string]string{
		"energy counted, against power":               "gpu_energy_joules_total",
		"busy time counted, against utilization":      "gpu_utilization_ratio",
		"memory used, free and reserved, against all": "gpu_memory_free_bytes",
		"utilization under load":                      "gpu_utilization_ratio",
		"power under load":                            "gpu_power_draw_watts",
	} {
		if !strings.Contains(lacks[name], metric) {
			t.Errorf("%s lacks %q, want %s", name, lacks[name], metric)
		}
	}
	var out strings.Builder
	if err := printChecks(&out, "title", counters(samples)); err != nil || !strings.Contains(out.String(), "not checked: ") {
		t.Errorf("printed %q, %v", out.String(), err)
	}
}

// A GPU that nvidia-smi lists is missed on the pages, and one without counters fails.
func TestPresent(t *testing.T) {
	samples := steady(t, nil)
	for uuid, want := range map[string]bool{"GPU-1": true, "GPU-2": false} {
		if got := present([]string{uuid}, samples); len(got) != 1 || got[0].ok != want {
			t.Errorf("%s: %+v, want ok: %v", uuid, got, want)
		}
	}
	if got := present([]string{"GPU-1"}, nil); len(got) != 1 || got[0].ok {
		t.Errorf("no pages: %+v, want not ok", got)
	}
	none := steady(t, map[string]func(float64) any{"gpu_ecc_errors_total": never, "gpu_link_io_bytes_total": never})
	if got := (window{"GPU-1", none}).rising(); got.ok {
		t.Errorf("no counters: %+v, want not ok", got)
	}
}

// Which GPUs are busy: those that report no utilization are neither busy nor idle.
func TestUse(t *testing.T) {
	p, err := readPage(`gpu_utilization_ratio{gpu_uuid="GPU-1"} 0.9
gpu_utilization_ratio{gpu_uuid="GPU-2"} 0.1
`)
	if err != nil {
		t.Fatal(err)
	}
	busy, idle := utilized(p, []string{"GPU-1", "GPU-2", "GPU-3"})
	if !slices.Equal(busy, []string{"GPU-1"}) || !slices.Equal(idle, []string{"GPU-2"}) {
		t.Errorf("busy %v, idle %v", busy, idle)
	}
}
