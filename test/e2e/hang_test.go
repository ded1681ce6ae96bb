package e2e

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// start starts gpumeter serve with its log in a file, and returns the process, its URL and what reads the log.
// The caller waits for the process.
func start(t *testing.T, env []string, args ...string) (cmd *exec.Cmd, url string, log func() string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // the process has its own
	address := freeAddress(t)
	cmd = exec.Command(binary, append([]string{"serve", "--web.listen-address", address}, args...)...)
	cmd.Env = append(append(os.Environ(), "GPUMETER_HOST_SYS="+t.TempDir(), "STATE_DIRECTORY="), env...)
	cmd.Stderr = file
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	log = func() string {
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("gpumeter's log:\n%s", log())
		}
	})
	return cmd, "http://" + address, log
}

// Pipes in place of all files that gpumeter reads cost what is in them and nothing else: it serves, is healthy
// and stops.
func TestHang_PipesInPlaceOfFiles(t *testing.T) {
	t.Parallel()
	library, config := fakeDriver(t)
	fakenvml.Configure(t, config, "gpus 1")
	state, kubelet := t.TempDir(), t.TempDir()
	checkpoint := filepath.Join(kubelet, "device-plugins", "kubelet_internal_checkpoint")
	err := errors.Join(
		syscall.Mkfifo(filepath.Join(state, "inventory.json"), 0o600), syscall.Mkfifo(filepath.Join(state, "downtime.json"), 0o600),
		syscall.Mkfifo(filepath.Join(state, "kernellog.json"), 0o600),
		os.MkdirAll(filepath.Join(kubelet, "pod-resources"), 0o700), os.MkdirAll(filepath.Dir(checkpoint), 0o700), syscall.Mkfifo(checkpoint, 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	kernelLog := filepath.Join(t.TempDir(), "kern.log")
	if err := os.WriteFile(kernelLog, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := serve(t, []string{"FAKENVML_CONFIG=" + config}, "--nvml.library", library, "--state.directory", state, "--kubernetes.kubelet-dir", kubelet,
		"--kernel-log", kernelLog) // it fails the test when it does not stop
	want(t, parse(t, e.get(t, "/metrics", "Accept", "text/plain")), 1, "gpu_up", "gpu_index=0")
	if body, code, err := request(t.Context(), http.MethodGet, e.url+"/healthz", nil); err != nil || code != http.StatusOK {
		t.Errorf("/healthz: %d, %v: %s", code, err, body)
	}
	waitUntil(t, "the checkpoint is counted as failed", func() bool {
		all := parse(t, e.get(t, "/metrics", "Accept", "text/plain"))
		n, _ := series(all, "gpumeter_attribution_faults_total", "gpumeter_witness=checkpoint", "gpumeter_reason=broken")
		return n > 0
	})
}

// A pipe in place of a configuration file is refused.
func TestHang_PipeInPlaceOfConfiguration(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--config.file", "--web.config.file"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := exec.CommandContext(ctx, binary, "serve", "--simulate=h100x1", flag, pipe).CombinedOutput()
		cancel()
		if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != 2 || !strings.Contains(string(out), "named pipe") {
			t.Errorf("%s: %v\n%s\nwant exit code 2 and that it is a named pipe", flag, err, out)
		}
	}
}

// frozenDisk mounts a file system of its own, and returns its directory and what freezes and thaws it.
func frozenDisk(t *testing.T) (dir string, freeze, thaw func()) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a disk that can be frozen needs root and a loop device: this is no root")
	}
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	must := func(name string, args ...string) {
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 16<<20)); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, dir}, {"fsfreeze", "-u", dir}} {
		out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
		if err != nil && command[0] != "fsfreeze" || errors.Is(err, exec.ErrNotFound) {
			t.Skipf("a disk that can be frozen needs root and a loop device: %v: %v\n%s", command, err, out)
		}
	}
	t.Cleanup(func() { must("umount", dir) })
	frozen := false
	thaw = func() {
		if frozen {
			must("fsfreeze", "-u", dir)
			frozen = false
		}
	}
	t.Cleanup(thaw)
	return dir, func() { must("fsfreeze", "-f", dir); frozen = true }, thaw
}

// A state directory that freezes while gpumeter runs stops no scrape and no shutdown, and the log names it.
func TestHang_FrozenStateDirectory(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes more than the minute between two heartbeats")
	}
	t.Parallel()
	dir, freeze, thaw := frozenDisk(t)
	library, config := fakeDriver(t)
	fakenvml.Configure(t, config, "gpus 1")
	cmd, url, log := start(t, []string{"FAKENVML_CONFIG=" + config}, "--nvml.library", library, "--state.directory", filepath.Join(dir, "state"), "--kernel-log", "none")
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { cmd.Process.Kill(); thaw() }) //nolint:errcheck // it has ended when all went well
	if _, err := fetch(url+"/readyz", nil); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the state is saved", func() bool {
		files, err := filepath.Glob(filepath.Join(dir, "state", "*.json"))
		return err == nil && len(files) >= 1
	})
	freeze()
	for range 70 { // the next heartbeat hangs
		page, err := fetch(url+"/metrics", []string{"Accept", "text/plain"})
		if err != nil {
			t.Fatal(err)
		}
		all := parse(t, page)
		want(t, all, 1, "gpu_up", "gpu_index=0")
		if _, known := series(all, "gpumeter_downtime_seconds_total"); !known {
			t.Fatal("no gpumeter_downtime_seconds_total")
		}
		time.Sleep(time.Second)
	}
	if body, code, err := request(t.Context(), http.MethodGet, url+"/healthz", nil); err != nil || code != http.StatusOK {
		t.Errorf("/healthz: %d, %v: %s; a restart does not help against a frozen disk", code, err, body)
	}
	if got := log(); strings.Count(got, "cannot write the heartbeat") != 1 {
		t.Error("the log does not say once that the heartbeat cannot be written")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "it stops", func() bool { return strings.Contains(log(), "msg=stopped") })
	thaw() // a thread that waits for a frozen disk cannot be killed, so the kernel keeps the process until then
	if err := <-ended; err != nil {
		t.Errorf("gpumeter: %v, want exit code 0", err)
	}
}

// What keeps gpumeter from ending is named in one line, and does not change the exit code.
func TestHang_ShutdownNamesWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	library, config := fakeDriver(t)
	fakenvml.Configure(t, config, "gpus 1", "hang nvmlInit_v2")
	cmd, url, log := start(t, []string{"FAKENVML_CONFIG=" + config}, "--nvml.library", library)
	if _, err := fetch(url+"/metrics", nil); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }) //nolint:errcheck // Wait tells
	defer kill.Stop()
	if err := cmd.Wait(); err != nil {
		t.Errorf("gpumeter: %v, want exit code 0", err)
	}
	if n := strings.Count(log(), `parts="feed source nvml: open"`); n != 1 {
		t.Errorf("named in %d lines, want one", n)
	}
}
