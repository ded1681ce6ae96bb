package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// kernelLog is a file of the kernel's records. It returns what appends texts to it.
func kernelLog(t *testing.T) (path string, say func(texts ...string)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "kmsg")
	sequence := 0
	say = func(texts ...string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			sequence++
			if _, err := fmt.Fprintf(f, "3,%d,%d,-;%s\n", sequence, 1000*sequence, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return path, say
}

// Each XID is counted once, though the driver and the kernel's log tell of it; of several at once,
// of which the driver tells one, all are; and a GPU that is lost has those the log alone tells.
func TestXIDsOfDriverAndKernelLog(t *testing.T) {
	library, config := fakeDriver(t)
	fakenvml.Configure(t, config, "gpus 2")
	path, say := kernelLog(t)
	say("NVRM: Xid (PCI:0000:1a:00): 31, before the start")
	e := serve(t, []string{"FAKENVML_CONFIG=" + config}, "--nvml.library", library, "--kernel-log", path, "--max-age", "1ms", "--workload-hold", "1ms")
	page := func() map[string]*dto.MetricFamily { return parse(t, e.get(t, "/metrics", "Accept", "text/plain")) }
	// until waits for a number, and looks once more whether it stays.
	until := func(number float64, name string, labels ...string) {
		t.Helper()
		deadline := time.Now().Add(10 * time.Second)
		for time.Now().Before(deadline) {
			if got, _ := series(page(), name, labels...); got == number {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(300 * time.Millisecond)
		want(t, page(), number, name, labels...)
	}

	all := page()
	for _, index := range []string{"0", "1"} {
		for _, action := range []string{"reset", "reboot", "drain", "inspect", "application", "none", "unknown"} {
			want(t, all, 0, "gpu_xid_events_total", "gpu_index="+index, "gpu_xid_action="+action)
		}
	}
	if all["gpu_xid_errors_total"] != nil {
		t.Error("there are codes though nothing happened")
	}

	before := float64(time.Now().Unix())
	say("NVRM: Xid (PCI:0000:1a:00): 79, pid=7, name=x, GPU has fallen off the bus.", "NVRM: GPU 0000:1a:00.0: GPU has fallen off the bus.")
	fakenvml.Configure(t, config, "gpus 2", "lost 0", "xid 0 79")
	until(1, "gpu_xid_errors_total", "gpu_index=0", "gpu_xid=79")
	all = page()
	want(t, all, 1, "gpu_xid_events_total", "gpu_index=0", "gpu_xid_action=reboot")
	want(t, all, 0, "gpu_up", "gpu_index=0")
	if at, _ := series(all, "gpu_xid_last_seen_timestamp_seconds", "gpu_index=0", "gpu_xid=79"); at < before-1 || at > before+30 {
		t.Errorf("last seen at %v, and it was %v", at, before)
	}

	say("NVRM: Xid (PCI:0000:1a:00): 119, after it was lost")
	until(1, "gpu_xid_errors_total", "gpu_index=0", "gpu_xid=119")

	many := "NVRM: Xid (PCI:0000:1B:00 GPU-I:05): 13, pid=8"
	say(many, many, many)
	fakenvml.Configure(t, config, "gpus 2", "xid 0 79", "xid 1 13")
	until(3, "gpu_xid_errors_total", "gpu_index=1", "gpu_xid=13")
	all = page()
	want(t, all, 3, "gpu_xid_events_total", "gpu_index=1", "gpu_xid_action=application")
	want(t, all, 1, "gpu_xid_events_total", "gpu_index=0", "gpu_xid_action=reset")
	if n, there := series(all, "gpu_xid_errors_total", "gpu_xid=31"); there {
		t.Errorf("%v XIDs of before the start, and nothing says that they were not counted then", n)
	}
}

// The kernel's log is followed across a release and acquire, also of a device that hangs: the source then
// goes on without being opened again.
func TestKernelLog_IsFollowedAcrossReleaseAndAcquire(t *testing.T) {
	for name, hang := range map[string][]string{"healthy": nil, "a device hangs": {"hang nvmlDeviceGetPowerUsage 1"}} {
		t.Run(name, func(t *testing.T) {
			library, config := fakeDriver(t)
			fakenvml.Configure(t, config, "gpus 2")
			path, say := kernelLog(t)
			say("the machine has started")
			e := serve(t, []string{"FAKENVML_CONFIG=" + config}, "--nvml.library", library, "--kernel-log", path,
				"--max-age", "1ms", "--workload-hold", "1ms", "--read-timeout", "300ms", "--web.enable-lifecycle")
			page := func() map[string]*dto.MetricFamily { return parse(t, e.get(t, "/metrics", "Accept", "text/plain")) }
			page()
			fakenvml.Configure(t, config, append([]string{"gpus 2"}, hang...)...)
			page()
			for range 3 { // also in quick succession
				for _, path := range []string{"/-/release", "/-/acquire"} {
					r, err := http.Post(e.url+path, "", nil)
					if err != nil {
						t.Fatal(err)
					}
					if err := r.Body.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
			say("NVRM: Xid (PCI:0000:1a:00): 119, pid=7, name=x")
			fakenvml.Configure(t, config, "gpus 2")
			deadline := time.Now().Add(10 * time.Second)
			for {
				if n, _ := series(page(), "gpu_xid_errors_total", "gpu_index=0", "gpu_xid=119"); n == 1 {
					return
				}
				if time.Now().After(deadline) {
					t.Fatal("an XID that the kernel logs after release and acquire is never counted")
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
}

// Without the kernel's log there are the driver's XIDs; why it is not read is said once.
func TestKernelLogNotRead(t *testing.T) {
	library, config := fakeDriver(t)
	fakenvml.Configure(t, config, "gpus 1")
	for _, c := range []struct {
		path string
		said int
	}{{filepath.Join(t.TempDir(), "none"), 1}, {os.DevNull, 1}, {"none", 0}, {"", 0}} {
		once := exec.Command(binary, "once", "--nvml.library", library, "--kernel-log="+c.path, "--format=prometheus", "--log.level=debug")
		once.Env = append(os.Environ(), "FAKENVML_CONFIG="+config)
		var log strings.Builder
		once.Stderr = &log
		out, err := once.Output()
		if err != nil {
			t.Fatal(err)
		}
		want(t, parse(t, string(out)), 0, "gpu_xid_events_total", "gpu_index=0", "gpu_xid_action=reboot")
		if strings.Count(log.String(), "XIDs come from the driver alone") != c.said || strings.Contains(log.String(), "XIDs are read from") {
			t.Errorf("--kernel-log=%s: want it said %d times that the log is not read:\n%s", c.path, c.said, log.String())
		}
	}
}
