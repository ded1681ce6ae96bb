package gpu

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// All that is done on a machine with a GPU is done here on one with our own driver, which a load
// makes busy, and what is printed has each of the parts.
func TestExamination(t *testing.T) {
	t.Parallel()
	m := newBench(t).machine(t, "590", "gpus 1", "board h200", "load 0 0", "set 0 power 80000", "process 0 4711 1048576000 50")
	fakenvml.Configure(t, m.config+".busy", "gpus 1", "board h200", "load 0 97", "set 0 power 650000", "process 0 4711 1048576000 97")
	m.load = "mv " + m.config + ".busy " + m.config + "; exec sleep 600"
	var out strings.Builder
	m.examine(t, &out, m.library, 4*time.Second)
	for _, part := range []string{
		`gpumeter once: NVIDIA H200 GPU-0{8}-0000-4000-8000-0{12}, driver 590.48.01: \d{3} values agree, 0 differ`,
		`(?m)^gpu_power_draw_watts +80.00 W +80 +ok +gpu_power_readings/average`,
		`(?m)^gpu_power_draw_watts +650.00 W +650 +ok +gpu_power_readings/average`,
		`(?m)^gpu_process_memory_usage_bytes\{process_pid=4711\} +1000 MiB .*ok`,
		`(?m)^neither:.* gpu_fan_speed_ratio`,
		`(?m)^ +[\d.]+ +[\d.]+ +[\d.]+ +0 +scrape +nvmlDeviceGetPowerUsage$`,
		`(?m) +0 +background +nvmlDeviceGetPcieThroughput$`,
		`(?m)energy counted, against power +\d+\.\d+ W +80\.000 W ± .* ok$`,
		`(?m)energy counted, against power +\d+\.\d+ W +650\.000 W ± .* ok$`,
		`(?m)busy time counted, against utilization .* ok$`,
		`(?m)utilization under load +0.970 +at least 0.5 +ok$`,
	} {
		if !regexp.MustCompile(part).MatchString(out.String()) {
			t.Errorf("nothing printed is like %s", part)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// A load that ends by itself is told of, with what it said.
func TestLoadThatFails(t *testing.T) {
	m := &machine{load: "echo no device; exit 3"}
	l := m.startLoad(t, time.Second)
	err := <-l.done
	l.done <- err
	if err == nil || !strings.Contains(l.said.String(), "no device") {
		t.Errorf("the load ended with %v and said %q", err, l.said)
	}
}

var asked = regexp.MustCompile(`(?m)^\task\w+:\s+"(nvml[^"]+)",$`)
var measured = regexp.MustCompile(`(?m)^\t\{"(nvml[^"]+)", (SCRAPE|BACKGROUND), `)

// The calls that are measured are those the exporter asks as questions, and others that it makes.
func TestCallsAreTheExporters(t *testing.T) {
	dir := filepath.Join(root(t), "exporter", "source", "nvml")
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal("no source nvml: ", err)
	}
	var code strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(raw)
	}
	names := func(found [][]string) map[string]bool {
		out := map[string]bool{}
		for _, m := range found {
			out[m[1]] = true
		}
		return out
	}
	want, got := names(asked.FindAllStringSubmatch(code.String(), -1)), names(measured.FindAllStringSubmatch(callsSource, -1))
	if len(want) < 40 {
		t.Errorf("the exporter asks only %d questions: %v", len(want), want)
	}
	for name := range want {
		if !got[name] {
			t.Errorf("%s is not measured", name)
		}
	}
	for name := range got {
		method := "." + strings.TrimPrefix(name, "nvmlDevice") + "("
		if !want[name] && !strings.Contains(code.String(), method) {
			t.Errorf("%s is measured, and no call of the exporter's", name)
		}
	}
}

// What the program declares of NVML by itself is what the header says.
func TestCallsKnowTheHeader(t *testing.T) {
	compiled(t, "calls", callsSource, "-DCHECK_LAYOUT", "-Wno-deprecated-declarations", "-I", fakenvml.Headers(t))
}

// Every call is measured, of drivers that lack some, and those succeed that the driver has.
func TestTimings(t *testing.T) {
	t.Parallel()
	program := compiled(t, "calls", callsSource)
	device, links := fieldIDs(t)
	if strings.Count(device, ",") < 30 || strings.Count(links, ",") < 30 {
		t.Fatalf("fields of the device %s, of its links %s", device, links)
	}
	for driver, lacking := range map[string][]string{
		"450": {"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMarginTemperature", "nvmlGpmSampleGet"},
		"610": {},
	} {
		t.Run(driver, func(t *testing.T) {
			m := bench{}.machine(t, driver, "gpus 1", "board everything", "mig 0 on 3g.40gb:2:0", "process 0 4711 1048576000 50 2 0")
			all, err := m.timings(program, m.library, device, links)
			if err != nil {
				t.Fatal(err)
			}
			codes := map[string]int{}
			for _, c := range all {
				codes[c.call] = c.code
				if c.least > c.median || c.median > c.most || c.code == 0 && c.most == 0 {
					t.Errorf("%+v", c)
				}
			}
			for _, name := range lacking {
				if codes[name] != 13 {
					t.Errorf("%s returned %d, want 13: not found", name, codes[name])
				}
			}
			for _, name := range []string{"nvmlInit_v2", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetFieldValues", "nvmlDeviceGetFieldValues of links", "nvmlDeviceGetPcieThroughput"} {
				if code, there := codes[name]; !there || code != 0 {
					t.Errorf("%s returned %d (there: %v), want 0", name, code, there)
				}
			}
			if driver != "610" {
				return
			}
			for name, code := range codes {
				if mig := code == 3 && (strings.Contains(name, "Utilization") || name == "nvmlDeviceGetSamples"); code != 0 && !mig { // not under MIG
					t.Errorf("%s returned %d", name, code)
				}
			}
		})
	}
	m := bench{}.machine(t, "610", "mismatch")
	if _, err := m.timings(program, m.library, device, links); err == nil {
		t.Error("a driver that can not be initialised is measured")
	}
}

// Slow is what makes a scrape slow: not what fails, nor what is measured beside it.
func TestSlow(t *testing.T) {
	for _, c := range []struct {
		timing
		want bool
	}{
		{timing{where: "scrape", median: 5001}, true},
		{timing{where: "scrape", median: 4999, most: 90000}, false},
		{timing{where: "scrape", median: 5001, code: 3}, false},
		{timing{where: "background", median: 20000}, false},
		{timing{where: "start", median: 900000}, false},
	} {
		if got := c.slow(); got != c.want {
			t.Errorf("%+v is slow: %v, want %v", c.timing, got, c.want)
		}
	}
}

// The loader calls the driver as it wants to be called, launches again and again, and ends in time.
func TestLoader(t *testing.T) {
	t.Parallel()
	library := cuda(t)
	m := &machine{env: []string{"GPUMETER_CUDA_LIBRARY=" + library}}
	program := compiled(t, "load", loadSource)
	start := time.Now()
	said, err := m.output(program, "1")
	if took := time.Since(start); err != nil || said != "loading 1 devices\n" || took > 10*time.Second {
		t.Errorf("after %v: %v\n%s", took, err, said)
	}
	m.env = []string{"GPUMETER_CUDA_LIBRARY=" + filepath.Join(t.TempDir(), "libcuda.so.1")}
	if _, err := m.output(program, "1"); err == nil || !strings.Contains(err.Error(), "cannot open shared object") {
		t.Errorf("without a driver: %v", err)
	}
}

// The exporter is waited for while the driver takes longer to initialise than a device may take to
// answer (2 s), so neither page is without its GPU.
func TestSlowInit(t *testing.T) {
	t.Parallel()
	m := bench{gpumeter: builtBinary(t)}.machine(t, "580", "gpus 1", "board h100", "init_ms 4000")
	p, err := m.once()
	if err != nil || len(p.uuids()) != 1 {
		t.Errorf("gpumeter once: GPUs %v, %v; want one GPU", p.uuids(), err)
	}
	p, err = m.serve(t).page()
	if err != nil || len(p.uuids()) != 1 {
		t.Errorf("gpumeter serve: GPUs %v, %v; want one GPU", p.uuids(), err)
	}
}

func TestNVMLServes(t *testing.T) {
	for text, want := range map[string]bool{
		`{"status":"ready","sources":[{"name":"host","state":"serving"},{"name":"nvml","state":"serving"}]}`: true,
		`{"status":"ready","sources":[{"name":"host","state":"serving"},{"name":"nvml","state":"opening"}]}`: false,
		`{"status":"ready","sources":[{"name":"host","state":"serving"}]}`:                                   false,
		``: false,
	} {
		if got := nvmlServes(text); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// Programs find the driver's libraries in a directory the loader does not search. The fake
// nvidia-smi and the loader open them by name, as the real ones do.
func TestDriverOutsideTheLoadersPath(t *testing.T) {
	t.Parallel()
	library := cuda(t)
	env, err := driverEnv(filepath.Join(filepath.Dir(library), "libcuda.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{env: env}
	if said, err := m.output(compiled(t, "load", loadSource), "1"); err != nil || said != "loading 1 devices\n" {
		t.Errorf("the loader with %v: %v\n%s", env, err, said)
	}
	if _, err := driverEnv(filepath.Join(t.TempDir(), fakenvml.Library)); err == nil || !strings.Contains(err.Error(), "GPUMETER_NVML_LIBRARY") {
		t.Errorf("a library that does not exist: %v", err)
	}
	if env, err := driverEnv("libnvidia-ml.so.1"); err != nil || len(env) != 1 {
		t.Errorf("a name for the loader to find: %v, %v", env, err)
	}
	if env, err := driverEnv(""); env != nil || err != nil {
		t.Errorf("no library named: %v, %v", env, err)
	}
}

func TestWithoutCompiler(t *testing.T) {
	missing := errors.New("gcc is not in PATH")
	for _, c := range []struct {
		gcc  error
		load string
		want []string
	}{
		{nil, "", nil},
		{missing, "", []string{"calls are not measured", "set GPUMETER_GPU_LOAD"}},
		{missing, "burn", []string{"calls are not measured"}},
	} {
		got := withoutCompiler(c.gcc, c.load)
		if len(got) != len(c.want) {
			t.Errorf("gcc: %v, load %q: %q, want %d lines", c.gcc, c.load, got, len(c.want))
			continue
		}
		for i, part := range c.want {
			if !strings.Contains(got[i], part) {
				t.Errorf("gcc: %v, load %q: %q, want %q", c.gcc, c.load, got[i], part)
			}
		}
	}
}
