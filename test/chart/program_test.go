package chart

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program builds gpumeter.
func program(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "gpumeter")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../exporter/cmd/gpumeter").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// The flags that are rendered are flags of the program: of all it only refuses the one that is none.
func TestFlags(t *testing.T) {
	binary := program(t)
	for _, values := range []string{
		"", "attribution=none", "metadata.source=podsAPI", "kernelLog=true,web.debug=true,web.configSecret=s",
		"metadata.source=kubelet,metadata.kubeletInsecure=true,metadata.podLabels={a,b/*},metadata.podAnnotations={c},metrics.include={system},metrics.exclude={gpu.media.*},extraArgs={--series-limit=5}",
	} {
		args := append(pod(t, values).Containers[0].Args, "--not-a-flag")
		out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "--not-a-flag") {
			t.Errorf("%s: %v: %v\n%s", values, args, err, out)
		}
	}
}

// On a node without a GPU, a driver, a kubelet or an API server the pod is ready by its own probes, and serves a page.
func TestBareNode(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	c := pod(t, "preset=gpuOperator").Containers[0]
	none := t.TempDir()
	here := strings.NewReplacer(":9450", address, "/var/lib/gpumeter", t.TempDir(), "/var/lib/kubelet", none, "/host/proc", "/proc", "$(NODE_NAME)", "node-1")
	var args []string
	for _, arg := range c.Args {
		args = append(args, here.Replace(arg))
	}
	cmd := exec.CommandContext(t.Context(), program(t), args...)
	cmd.Env = append(os.Environ(), "GPUMETER_NVML_LIBRARY="+none+"/libnvidia-ml.so.1", "GPUMETER_HOST_SYS="+none, "KUBERNETES_SERVICE_HOST=")
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, &log)
		}
	}()
	for _, path := range []string{c.ReadinessProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path, "/metrics"} {
		status := ""
		for end := time.Now().Add(20 * time.Second); status != "200 OK" && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			r, err := http.Get("http://" + address + path)
			if err != nil {
				status = err.Error()
				continue
			}
			status = r.Status
			if err := r.Body.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if status != "200 OK" {
			t.Fatalf("%s: %s", path, status)
		}
	}
}
