package e2e

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// Processes come and go, and a GPU is cut into parts, under the exporter as it is installed: on each
// page the memory of all workloads is the GPUs', and once the last hold is over so is everything they
// used since the first page.
func TestWorkloadsAddUpThroughTheLoader(t *testing.T) {
	t.Parallel() // most of it is the hold of 30 s
	library, config := fakeDriver(t, fakenvml.Driver("570"))
	proc := t.TempDir()
	for pid := 500; pid < 520; pid++ {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		if err := os.Mkdir(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"stat":   fmt.Sprintf("%d (worker) S 1 %[1]d %[1]d 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 1000 1 1\n", pid),
			"cgroup": fmt.Sprintf("0::/system.slice/worker-%d.service\n", pid%4),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	machine := func(more ...string) {
		t.Helper()
		fakenvml.Configure(t, config, append([]string{"gpus 3", "board h100", "load 0 60", "load 1 0", "load 2 40"}, more...)...)
	}
	machine()
	e := serve(t, []string{"FAKENVML_CONFIG=" + config}, "--nvml.library", library, "--host.proc", proc, "--max-age", "1ms")
	page := func() map[string]*dto.MetricFamily {
		t.Helper()
		all := parse(t, e.get(t, "/metrics", "Accept", "text/plain"))
		used, held := byDevice(all, "gpu_memory_usage_bytes"), byDevice(all, "gpu_workload_memory_usage_bytes")
		for uuid, bytes := range used {
			if math.Abs(held[uuid]-bytes) > 1 {
				t.Errorf("%v bytes of all workloads on %s, %v of the GPU", held[uuid], uuid, bytes)
			}
		}
		return all
	}
	first, began := page(), time.Now()
	steps := [][]string{
		{"process 0 500 1073741824 20", "process 0 501 2147483648 30"},
		{"process 0 501 2147483648 30", "process 1 502 1073741824 0"},
		{"process 0 503 2147483648 50", "process 1 502 1073741824 0", "process 2 504 1073741824 30"},
		{"process 0 503 2147483648 50", "process 0 505 1073741824 10", "process 1 502 1073741824 0", "mig 2 on 3g.40gb:2:0,1g.10gb:7:0", "process 2 506 1073741824 2 0"},
		{"process 1 502 1073741824 0", "mig 2 on 1g.10gb:7:0"},
		{},
	}
	for _, step := range steps {
		machine(step...)
		for range 3 {
			time.Sleep(time.Second)
			page()
		}
	}
	time.Sleep(32 * time.Second)
	last := page()
	seconds := time.Since(began).Seconds()

	compare := func(what string, got, want map[string]float64, slack float64) {
		t.Helper()
		for uuid, n := range want {
			if math.Abs(got[uuid]-n) > slack {
				t.Errorf("%s of %s: %v in all workloads, %v of the GPU", what, uuid, got[uuid], n)
			}
		}
	}
	since := func(name string) map[string]float64 {
		out := byDevice(last, name)
		for uuid, n := range byDevice(first, name) {
			out[uuid] -= n
		}
		return out
	}
	compare("energy", byDevice(last, "gpu_workload_energy_joules_total"), since("gpu_energy_joules_total"), 1e-3)
	wall := map[string]float64{}
	for uuid := range byDevice(last, "gpu_up") {
		wall[uuid] = seconds
	}
	compare("allocated time", byDevice(last, "gpu_workload_allocated_time_seconds_total"), wall, 1)
	busy := since("gpu_busy_time_seconds_total")
	for _, i := range []string{"0", "1"} { // the third was cut, and its parts have each their own
		uuid := "GPU-00000000-0000-4000-8000-00000000000" + i
		compare("busy time", byDevice(last, "gpu_workload_busy_time_seconds_total"), map[string]float64{uuid: busy[uuid]}, 1e-3)
	}
	if idle, ok := series(last, "gpu_workload_allocated_time_seconds_total", "process_unit=worker-2.service", "gpu_uuid=GPU-00000000-0000-4000-8000-000000000001"); !ok || idle < 10 {
		t.Errorf("the idle process held its GPU for %v s", idle)
	}
	if worked, ok := series(last, "gpu_workload_busy_time_seconds_total", "process_unit=worker-2.service", "gpu_uuid=GPU-00000000-0000-4000-8000-000000000001"); !ok || worked != 0 {
		t.Errorf("the idle process worked for %v s (told: %v)", worked, ok)
	}
}

// byDevice is the sum of a family's series, by GPU.
func byDevice(families map[string]*dto.MetricFamily, name string) map[string]float64 {
	out := map[string]float64{}
	for _, m := range families[name].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "gpu_uuid" {
				out[l.GetValue()] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return out
}
