package budget

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// memoryLimit is the most resident memory of the exporter, in bytes.
const memoryLimit = 40 << 20

const (
	scrapeInterval = time.Second
	patience       = 2 * time.Minute // for what a slow machine takes long to do
)

// An exporter that reads 8 GPUs, follows 100 pods of which one is replaced each second, and is
// scraped each second with gzip, stays within its memory limit. GPUMETER_BUDGET_TIME says for how
// long; make budget sets ten minutes.
func TestResidentMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 seconds")
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("resident memory is read from /proc: ", err)
	}
	length := 20 * time.Second
	if text := os.Getenv("GPUMETER_BUDGET_TIME"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal("GPUMETER_BUDGET_TIME: ", err)
		}
	}
	k := new(kubelet)
	e := serve(t, serveKubelet(t, k))
	start := time.Now()
	next := start
	var page string
	for scrapes := 0; time.Since(start) < length; scrapes++ {
		k.replace()
		page = e.scrape(t)
		if scrapes%60 == 0 {
			t.Logf("after %v: %d bytes of page, %s", time.Since(start).Round(time.Second), len(page), e.memory(t))
		}
		next = next.Add(scrapeInterval)
		time.Sleep(time.Until(next))
	}
	newest := k.name((int(k.replaced.Load()) - 1) % pods % gpuPods)
	for deadline := time.Now().Add(patience); !strings.Contains(page, `k8s_pod_name="`+newest+`"`); page = e.scrape(t) {
		if time.Now().After(deadline) {
			t.Fatalf("the page does not name pod %s after %d lists of the kubelet", newest, k.lists.Load())
		}
		time.Sleep(100 * time.Millisecond)
	}
	if up := len(regexp.MustCompile(`(?m)^gpu_up\{.*\} 1$`).FindAllString(page, -1)); up != gpus {
		t.Errorf("%d GPUs are up, want %d", up, gpus)
	}
	if held := len(regexp.MustCompile(`(?m)^gpu_workload_allocated_time_seconds_total\{.*k8s_pod_name="worker`).FindAllString(page, -1)); held < gpuPods {
		t.Errorf("%d pods have allocated time, want at least %d", held, gpuPods)
	}
	used := e.memory(t)
	t.Logf("after %v and %d replaced pods: %s, the limit is %d bytes", length, k.replaced.Load(), used, memoryLimit)
	if used.peak > memoryLimit || used.now > memoryLimit {
		t.Errorf("resident memory: %s, the limit is %d bytes", used, memoryLimit)
	}
}

// exporter is a running gpumeter.
type exporter struct {
	url    string
	pid    int
	client *http.Client
}

// serve starts gpumeter with the fake driver and this kubelet directory, until the test ends, and
// waits until the page has all GPUs and their pods.
func serve(t *testing.T, kubeletDir string) *exporter {
	t.Helper()
	library := filepath.Join(fakenvml.Build(t), fakenvml.Library)
	config := filepath.Join(t.TempDir(), "config")
	lines := []string{fmt.Sprintf("gpus %d", gpus), "board h100"}
	for gpu := range gpus {
		lines = append(lines, fmt.Sprintf("load %d %d", gpu, 10*gpu+5))
	}
	fakenvml.Configure(t, config, lines...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var logs bytes.Buffer
	cmd := exec.Command(binary, "serve", "--web.listen-address", address, "--nvml.library", library, "--kubernetes.kubelet-dir", kubeletDir)
	cmd.Env = append(os.Environ(), "FAKENVML_CONFIG="+config, "GPUMETER_HOST_SYS="+t.TempDir(), "STATE_DIRECTORY=")
	cmd.Stderr = &logs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("gpumeter serve: %v\n%s", err, logs.String())
		}
	})
	e := &exporter{"http://" + address, cmd.Process.Pid, &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		page, err := e.get()
		if err == nil && strings.Count(page, "\ngpu_up{") == gpus && strings.Contains(page, `k8s_pod_name="worker`) {
			return e
		}
		if time.Now().After(deadline) {
			t.Fatalf("the exporter does not report %d GPUs with pods: %v", gpus, err)
		}
	}
}

// scrape returns the page, as Prometheus would fetch it in the text format.
func (e *exporter) scrape(t *testing.T) string {
	t.Helper()
	page, err := e.get()
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func (e *exporter) get() (page string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+"/metrics", nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Accept", "text/plain;version=0.0.4")
	r.Header.Set("Accept-Encoding", "gzip")
	response, err := e.client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Encoding") != "gzip" {
		return "", fmt.Errorf("/metrics: %s, encoding %q", response.Status, response.Header.Get("Content-Encoding"))
	}
	z, err := gzip.NewReader(response.Body)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(z)
	return string(text), err
}

// memory is what a process holds in RAM, in bytes.
type memory struct{ now, peak int }

func (m memory) String() string { return fmt.Sprintf("VmRSS %d bytes, VmHWM %d bytes", m.now, m.peak) }

var statusLine = regexp.MustCompile(`(?m)^(VmRSS|VmHWM):\s+(\d+) kB$`)

// memory reads the exporter's resident memory, now and at its peak.
func (e *exporter) memory(t *testing.T) memory {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(e.pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	kib := map[string]int{}
	for _, line := range statusLine.FindAllStringSubmatch(string(status), -1) {
		if kib[line[1]], err = strconv.Atoi(line[2]); err != nil {
			t.Fatal(err)
		}
	}
	if kib["VmRSS"] == 0 || kib["VmHWM"] == 0 {
		t.Fatalf("no VmRSS and VmHWM in /proc/%d/status:\n%s", e.pid, status)
	}
	return memory{kib["VmRSS"] << 10, kib["VmHWM"] << 10}
}
