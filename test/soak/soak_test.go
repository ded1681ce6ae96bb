// Package soak runs the built binary under steady scrapes and checks that nothing of it grows.
package soak

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

const (
	gpus     = 4
	interval = 200 * time.Millisecond // between two scrapes
	between  = time.Second            // two samples
	hold     = time.Second            // --workload-hold
)

// limits are how much each figure may grow from the end of the warm-up to the end, by the slope of all samples
// between. A leak of one goroutine, descriptor or kilobyte a scrape exceeds them within two minutes.
var limits = map[string]float64{"resident memory (KiB)": 3072, "goroutines": 8, "descriptors": 8}

// TestSoak scrapes a binary five times a second for GPUMETER_SOAK_TIME.
func TestSoak(t *testing.T) {
	text := os.Getenv("GPUMETER_SOAK_TIME")
	if text == "" {
		t.Skip("GPUMETER_SOAK_TIME is not set; make soak sets it")
	}
	length, err := time.ParseDuration(text)
	if err != nil || length < 30*time.Second {
		t.Fatalf("GPUMETER_SOAK_TIME=%s: want a duration of at least 30s", text)
	}
	e := serve(t)
	samples := map[string][]point{}
	var apart map[string]float64
	begin := time.Now()
	warm := min(length/3, 5*time.Minute)
	scrapes := 0
	for next, sample := begin, begin; time.Since(begin) < length; time.Sleep(time.Until(next)) {
		next = next.Add(interval)
		all := e.page(t)
		scrapes++
		since := time.Since(begin)
		if since < warm {
			apart = differences(all)
			continue
		}
		compare(t, since, differences(all), apart)
		if time.Now().After(sample) {
			sample = time.Now().Add(between)
			for name, n := range e.figures(t, all) {
				samples[name] = append(samples[name], point{since.Seconds(), n})
			}
		}
		if t.Failed() {
			return
		}
	}
	seconds := (length - warm).Seconds()
	for name, limit := range limits {
		first, last := samples[name][0].y, samples[name][len(samples[name])-1].y
		grown := slope(samples[name]) * seconds
		t.Logf("%d scrapes, %s: %.0f after %v, %.0f at the end, %+.1f by slope; the limit is %.0f", scrapes, name, first, warm, last, grown, limit)
		if !(grown <= limit) {
			t.Errorf("%s grew by %.1f in %v, the limit is %.0f", name, grown, length-warm, limit)
		}
	}
}

// point is one sample, at x seconds.
type point struct{ x, y float64 }

// slope is that of the line through the points with the least squares.
func slope(points []point) float64 {
	var n, x, y, xx, xy float64
	for _, p := range points {
		n, x, y, xx, xy = n+1, x+p.x, y+p.y, xx+p.x*p.x, xy+p.x*p.y
	}
	return (n*xy - x*y) / (n*xx - x*x)
}

func TestSlope(t *testing.T) {
	if got := slope([]point{{0, 1}, {1, 4}, {2, 5}, {3, 8}}); math.Abs(got-2.2) > 1e-9 {
		t.Errorf("%v, want 2.2", got)
	}
}

// pairs are counters of devices and those of workloads that add up to them.
var pairs = map[string]string{
	"gpu_energy_joules_total":     "gpu_workload_energy_joules_total",
	"gpu_busy_time_seconds_total": "gpu_workload_busy_time_seconds_total",
}

// differences returns what a device's counter is above the sum of its workloads, by counter and device. Once the
// workloads count, it does not change: it is what the device counted before.
func differences(all map[string]*dto.MetricFamily) map[string]float64 {
	out := map[string]float64{}
	for device, workload := range pairs {
		for name, sign := range map[string]float64{device: 1, workload: -1} {
			for _, m := range all[name].GetMetric() {
				for _, l := range m.GetLabel() {
					if l.GetName() == "gpu_uuid" {
						out[device+" of "+l.GetValue()] += sign * m.GetCounter().GetValue()
					}
				}
			}
		}
	}
	return out
}

func compare(t *testing.T, since time.Duration, got, want map[string]float64) {
	t.Helper()
	if len(got) != len(pairs)*gpus {
		t.Errorf("after %v: %d sums, want %d", since, len(got), len(pairs)*gpus)
	}
	for name, n := range want {
		if math.Abs(got[name]-n) > 1e-3 {
			t.Errorf("after %v: %s is %v above the sum of its workloads, %v before", since, name, got[name], n)
		}
	}
}

// exporter is a running gpumeter.
type exporter struct {
	url string
	pid int
}

// serve builds gpumeter and starts it with the fake driver until the test ends.
func serve(t *testing.T) *exporter {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "gpumeter")
	build := exec.Command("make", "--no-print-directory", "build", "BINARY="+binary)
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	config := filepath.Join(t.TempDir(), "config")
	fakenvml.Configure(t, config, fmt.Sprintf("gpus %d", gpus), "board h100", "load 0 60", "load 1 0", "load 2 40", "load 3 100")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var logs bytes.Buffer
	cmd := exec.Command(binary, "serve", "--web.listen-address", address, "--nvml.library", filepath.Join(fakenvml.Build(t), fakenvml.Library),
		"--workload-hold", hold.String(), "--max-age", "100ms", "--kernel-log", "none", "--state.directory", t.TempDir())
	cmd.Env = append(os.Environ(), "FAKENVML_CONFIG="+config, "GPUMETER_HOST_SYS="+t.TempDir())
	cmd.Stderr = &logs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt) //nolint:errcheck // Wait tells
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("gpumeter serve: %v\n%s", err, logs.String())
		}
	})
	e := &exporter{"http://" + address, cmd.Process.Pid}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if all, err := e.get(); err == nil && len(all["gpu_up"].GetMetric()) == gpus {
			return e
		}
		if time.Now().After(deadline) {
			t.Fatalf("the exporter does not report %d GPUs", gpus)
		}
	}
}

func (e *exporter) page(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	all, err := e.get()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// get fetches and parses the page.
func (e *exporter) get() (map[string]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/plain")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics: %s: %w", response.Status, err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(body))
}

// figures returns what must not grow.
func (e *exporter) figures(t *testing.T, all map[string]*dto.MetricFamily) map[string]float64 {
	t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(e.pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "\nVmRSS:")
	kib, err := strconv.ParseFloat(strings.Fields(rest + " x")[0], 64)
	if err != nil {
		t.Fatalf("no VmRSS in %s/status: %v", dir, err)
	}
	descriptors, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	if len(all["go_goroutines"].GetMetric()) != 1 {
		t.Fatal("no go_goroutines on the page")
	}
	return map[string]float64{
		"resident memory (KiB)": kib, "goroutines": all["go_goroutines"].Metric[0].GetGauge().GetValue(), "descriptors": float64(len(descriptors)),
	}
}
