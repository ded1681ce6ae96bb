package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// scrapesOfRecovery is how many a run makes, a second apart; GPUMETER_RECOVERY_SCRAPES sets another number.
func scrapesOfRecovery(t *testing.T) int {
	text := os.Getenv("GPUMETER_RECOVERY_SCRAPES")
	if text == "" {
		return 25
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 20 {
		t.Fatalf("GPUMETER_RECOVERY_SCRAPES=%s: want a number of at least 20", text)
	}
	return n
}

// One of eight GPUs falls off the bus and comes back at the end. No scrape finds a healthy GPU absent, late or
// lost, and none has a gap in its profile, whatever it takes to get the lost one back.
func TestRecovery_HealthyGPUsAreOnEveryPage(t *testing.T) {
	const lost, gpus = 3, 8
	for name, c := range map[string]struct {
		driver    []string // what the driver does from the loss on
		recovered bool     // the lost one is back in the end
		earlyBack bool     // it is back at once, and probes find that initialising NVML would cost the others
	}{
		"NVML can be initialised":      {nil, true, false},
		"Init takes half a second":     {[]string{"init_ms 500"}, true, false},
		"Init fails":                   {[]string{"fail nvmlInit_v2 999"}, false, true},
		"Init takes 20 s":              {[]string{"init_ms 20000"}, false, true},
		"the device stays off the bus": {[]string{fmt.Sprintf("fallen %d", lost)}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library, config := fakeDriver(t)
			fakenvml.Configure(t, config, fmt.Sprintf("gpus %d", gpus))
			interval := "1s" // of a short run
			if scrapesOfRecovery(t) > 100 {
				interval = "30s" // the default
			}
			sysfs := t.TempDir()
			bus := onBus(t, sysfs, gpus)
			e := serve(t, []string{"FAKENVML_CONFIG=" + config, "GPUMETER_HOST_SYS=" + sysfs}, "--nvml.library", library, "--kernel-log", "none",
				"--relist-interval", interval, "--retry-interval", interval, "--max-age", "100ms", "--log.level", "debug")
			page := func() map[string]*dto.MetricFamily { return parse(t, e.get(t, "/metrics", "Accept", "text/plain")) }
			var before map[string]bool
			waitUntil(t, "every GPU has a profile", func() bool {
				all := page()
				before = seriesByGPU(all, lost)
				for i := range gpus {
					if _, ok := series(all, "gpu_sm_active_ratio", fmt.Sprint("gpu_index=", i)); !ok {
						return false
					}
				}
				return true
			})
			last := map[string]float64{}
			n := scrapesOfRecovery(t)
			back := n - 15
			if c.earlyBack {
				back = 4
			}
			for i := range n {
				switch i {
				case 2:
					bus(lost, false)
					fakenvml.Configure(t, config, append([]string{fmt.Sprintf("gpus %d", gpus), fmt.Sprintf("fallen %d", lost)}, c.driver...)...)
				case back: // it could be back, which only Init finds
					bus(lost, true)
					fakenvml.Configure(t, config, append([]string{fmt.Sprintf("gpus %d", gpus)}, c.driver...)...)
				}
				all := page()
				compareSeries(t, i, before, seriesByGPU(all, lost))
				for gpu := range gpus {
					if gpu != lost {
						checkHealthy(t, i, all, fmt.Sprint("gpu_index=", gpu), last)
					}
				}
				time.Sleep(time.Second)
			}
			lostIsUp := func() bool { up, _ := series(page(), "gpu_up", fmt.Sprint("gpu_index=", lost)); return up == 1 }
			if c.recovered {
				waitUntil(t, "the lost GPU is read again", lostIsUp)
			} else if lostIsUp() {
				t.Error("the lost GPU is read, though that costs the others")
			}
		})
	}
}

// onBus puts the GPUs of the fake driver onto a PCI bus below sysfs. It returns what takes one off the bus,
// whose configuration space then reads as all bits set, and back.
func onBus(t *testing.T, sysfs string, gpus int) func(gpu int, answers bool) {
	t.Helper()
	dir := func(gpu int) string {
		return filepath.Join(sysfs, "bus", "pci", "devices", fmt.Sprintf("0000:%02x:00.0", 0x1a+gpu))
	}
	write := func(gpu int, name, text string) {
		if err := os.WriteFile(filepath.Join(dir(gpu), name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set := func(gpu int, answers bool) {
		if answers {
			write(gpu, "config", "\xde\x10\x30\x23")
		} else {
			write(gpu, "config", "\xff\xff\xff\xff")
		}
	}
	for gpu := range gpus {
		if err := errors.Join(os.MkdirAll(dir(gpu), 0o755), os.Symlink("../../drivers/nvidia", filepath.Join(dir(gpu), "driver"))); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"class": "0x030200\n", "vendor": "0x10de\n", "device": "0x2330\n"} {
			write(gpu, name, text)
		}
		set(gpu, true)
	}
	return set
}

// waitUntil polls for two minutes: the devices are listed every 30 s.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// seriesByGPU lists the series of each GPU but one, without their values.
func seriesByGPU(families map[string]*dto.MetricFamily, but int) map[string]bool {
	out := map[string]bool{}
	for name, f := range families {
		if !strings.HasPrefix(name, "gpu_") || strings.HasPrefix(name, "gpu_workload") || strings.HasPrefix(name, "gpu_usage") {
			continue
		}
		for _, m := range f.Metric {
			labels := []string{}
			index := ""
			for _, l := range m.Label {
				switch l.GetName() {
				case "gpu_index":
					index = l.GetValue()
				case "gpu_uuid", "gpu_vendor", "gpu_model":
					continue
				}
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			if index != "" && index != strconv.Itoa(but) {
				out[name+"{"+strings.Join(labels, ",")+"}"] = true
			}
		}
	}
	return out
}

// compareSeries checks that every series of before is still there.
func compareSeries(t *testing.T, scrape int, before, now map[string]bool) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if !now[name] {
			t.Errorf("scrape %d: no %s", scrape, name)
		}
	}
}

// checkHealthy checks that a GPU is up and profiled, and that its counters do not fall.
func checkHealthy(t *testing.T, scrape int, all map[string]*dto.MetricFamily, gpu string, last map[string]float64) {
	t.Helper()
	if up, _ := series(all, "gpu_up", gpu); up != 1 {
		for _, m := range all["gpu_state"].GetMetric() {
			if strings.Contains(m.String(), strings.TrimPrefix(gpu, "gpu_index=")) && m.GetGauge().GetValue() == 1 {
				t.Logf("%v", m)
			}
		}
		t.Errorf("scrape %d: %s is not up", scrape, gpu)
	}
	if _, ok := series(all, "gpu_sm_active_ratio", gpu); !ok {
		t.Errorf("scrape %d: %s has a gap in its profile", scrape, gpu)
	}
	for _, name := range []string{"gpu_sm_active_time_seconds_total", "gpu_busy_time_seconds_total", "gpu_energy_joules_total"} {
		n, ok := series(all, name, gpu)
		if before, had := last[name+gpu]; had && (!ok || n < before) {
			t.Errorf("scrape %d: %s of %s is %v (there: %v), %v before", scrape, name, gpu, n, ok, before)
		}
		last[name+gpu] = n
	}
}
