package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// fakeDriver is a libnvidia-ml of our own for the binary to load, and the file that tells it what to do.
func fakeDriver(t *testing.T, flags ...string) (library, config string) {
	t.Helper()
	dir := fakenvml.Build(t, flags...)
	return filepath.Join(dir, fakenvml.Library), filepath.Join(dir, "config")
}

// series finds the one series of a family that carries these label values.
func series(families map[string]*dto.MetricFamily, name string, values ...string) (float64, bool) {
	if families[name] == nil {
		return 0, false
	}
next:
	for _, m := range families[name].Metric {
		var all []string
		for _, l := range m.Label {
			all = append(all, l.GetName()+"="+l.GetValue())
		}
		text := "|" + strings.Join(all, "|") + "|"
		for _, v := range values {
			if !strings.Contains(text, "|"+v+"|") {
				continue next
			}
		}
		return m.GetGauge().GetValue() + m.GetCounter().GetValue(), true
	}
	return 0, false
}

func want(t *testing.T, families map[string]*dto.MetricFamily, number float64, name string, values ...string) {
	t.Helper()
	if got, ok := series(families, name, values...); !ok || got != number {
		t.Errorf("%s %v is %v (there: %v), want %v", name, values, got, ok, number)
	}
}

// The binary reads a driver through the loader, together with the real host's numbers; a GPU that
// hangs and one that falls off the bus cost their own series and nothing else.
func TestNVMLThroughTheLoader(t *testing.T) {
	library, config := fakeDriver(t)
	fakenvml.Configure(t, config, "gpus 3", "model Fake H200", "load 1 75", "throttle 1 0x44")
	e := serve(t, []string{"FAKENVML_CONFIG=" + config},
		"--nvml.library", library, "--metrics.include", "system", "--max-age", "1ms", "--read-timeout", "300ms", "--workload-hold", "1ms")
	page := func() map[string]*dto.MetricFamily { return parse(t, e.get(t, "/metrics", "Accept", "text/plain")) }

	all := page()
	want(t, all, 1, "gpumeter_source_state", "gpumeter_source=nvml", "gpumeter_source_state=serving")
	want(t, all, 3, "gpumeter_source_devices", "gpumeter_source=nvml")
	for _, index := range []string{"0", "1", "2"} {
		want(t, all, 1, "gpu_up", "gpu_index="+index, "gpu_model=Fake H200", "gpu_vendor=nvidia")
	}
	want(t, all, 0.75, "gpu_utilization_ratio", "gpu_index=1")
	want(t, all, 1, "gpu_throttle_reason", "gpu_index=1", "gpu_throttle_cause=sw_power_cap")
	want(t, all, 1, "gpu_throttle_active", "gpu_index=1", "gpu_throttle_bucket=thermal")
	want(t, all, 0, "gpu_throttle_active", "gpu_index=0", "gpu_throttle_bucket=thermal")
	if n, ok := series(all, "system_memory_limit_bytes"); !ok || n < 1<<28 {
		t.Errorf("the host's memory is %v", n)
	}
	used, _ := series(all, "gpu_memory_usage_bytes", "gpu_index=0")
	free, _ := series(all, "gpu_memory_free_bytes", "gpu_index=0")
	reserved, _ := series(all, "gpu_memory_reserved_bytes", "gpu_index=0")
	limit, _ := series(all, "gpu_memory_limit_bytes", "gpu_index=0")
	if used+free+reserved != limit || limit == 0 {
		t.Errorf("used %v + free %v + reserved %v is not the limit %v", used, free, reserved, limit)
	}

	fakenvml.Configure(t, config, "gpus 3", "model Fake H200", "hang nvmlDeviceGetPowerUsage 0", "lost 2", "xid 2 79")
	deadline := time.Now().Add(10 * time.Second)
	for all = page(); time.Now().Before(deadline); all = page() { // until the listener has heard of it
		if _, heard := series(all, "gpu_xid_errors_total", "gpu_index=2"); heard {
			break
		}
	}
	all = page() // a fault is 0 in its first reading
	want(t, all, 0, "gpu_up", "gpu_index=0")
	want(t, all, 1, "gpu_state", "gpu_index=0", "gpu_state=late")
	want(t, all, 1, "gpu_up", "gpu_index=1")
	want(t, all, 0, "gpu_up", "gpu_index=2")
	want(t, all, 1, "gpu_state", "gpu_index=2", "gpu_state=lost")
	want(t, all, 1, "gpu_xid_errors_total", "gpu_index=2", "gpu_xid=79")
	want(t, all, 1, "gpu_info", "gpu_index=2")
	if _, there := series(all, "gpu_power_draw_watts", "gpu_index=0"); there {
		t.Error("the GPU that hangs has a reading")
	}
	if n, _ := series(all, "gpumeter_read_faults_total", "gpumeter_source=nvml", "gpumeter_metric=*", "gpumeter_reason=late"); n < 1 {
		t.Error("the hang is not counted")
	}

	fakenvml.Configure(t, config, "gpus 3", "model Fake H200")
	for all = page(); time.Now().Before(deadline); all = page() {
		if up, _ := series(all, "gpu_up", "gpu_index=0"); up == 1 {
			break
		}
	}
	want(t, all, 1, "gpu_up", "gpu_index=0")
	want(t, all, 1, "gpu_up", "gpu_index=2")
}

// An answer in time, however short the scraper's patience and whatever hangs.
func TestScrapeInTimeDuringAHang(t *testing.T) {
	library, config := fakeDriver(t)
	fakenvml.Configure(t, config, "gpus 2", "hang nvmlDeviceGetPowerUsage 0")
	e := serve(t, []string{"FAKENVML_CONFIG=" + config}, "--nvml.library", library, "--max-age", "1ms", "--read-timeout", "1m")
	// get gives up long before the minute a device may take.
	all := parse(t, e.get(t, "/metrics", "Accept", "text/plain", "X-Prometheus-Scrape-Timeout-Seconds", "0.5"))
	want(t, all, 0, "gpu_up", "gpu_index=0")
	want(t, all, 1, "gpu_up", "gpu_index=1")
	fakenvml.Configure(t, config, "gpus 2")
}
