package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// A scrape that is under way when the exporter is told to stop is answered as any other.
func TestScrapeDuringShutdown(t *testing.T) {
	library, config := fakeDriver(t)
	fakenvml.Configure(t, config, "gpus 2")
	e := serve(t, []string{"FAKENVML_CONFIG=" + config}, "--nvml.library", library, "--max-age", "1ms", "--read-timeout", "5s")
	want(t, parse(t, e.get(t, "/metrics", "Accept", "text/plain")), 1, "gpu_up", "gpu_index=0")
	fakenvml.Configure(t, config, "gpus 2", "hang nvmlDeviceGetPowerUsage 0")
	page := make(chan string)
	go func() {
		body, err := fetch(e.url+"/metrics", []string{"Accept", "text/plain"})
		if err != nil {
			t.Error(err)
		}
		page <- body
	}()
	time.Sleep(300 * time.Millisecond) // the scrape waits for the first GPU
	e.stopping = true
	if err := e.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	fakenvml.Configure(t, config, "gpus 2")
	families := parse(t, <-page)
	want(t, families, 1, "gpu_up", "gpu_index=0")
	want(t, families, 1, "gpu_up", "gpu_index=1")
	want(t, families, 2, "gpumeter_source_devices", "gpumeter_source=nvml")
}

// A driver that hangs does not keep the exporter from ending when it is told to, nor
// --simulate-if-none from showing the machine as it is.
func TestStopWhileTheDriverHangs(t *testing.T) { // serve fails the test when it does not stop
	library, config := fakeDriver(t)
	for _, hang := range []string{"hang nvmlInit_v2", "hang nvmlDeviceGetCount_v2", "hang nvmlDeviceGetPowerUsage 0"} {
		t.Run(hang, func(t *testing.T) {
			fakenvml.Configure(t, config, "gpus 1", hang)
			e := serve(t, []string{"FAKENVML_CONFIG=" + config}, "--nvml.library", library, "--simulate-if-none", "--read-timeout", "300ms")
			if page := e.get(t, "/metrics"); strings.Contains(page, "Simulated") {
				t.Error("a sick machine is shown as a simulated one")
			}
		})
	}
}

// A driver without a device is no accelerator.
func TestSimulateWhereTheDriverHasNoDevice(t *testing.T) {
	library, config := fakeDriver(t)
	fakenvml.Configure(t, config, "gpus 0")
	e := serve(t, []string{"FAKENVML_CONFIG=" + config}, "--nvml.library", library, "--simulate-if-none")
	if page := e.get(t, "/metrics"); !strings.Contains(page, "Simulated") {
		t.Error("no simulated node")
	}
}
