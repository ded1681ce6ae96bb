package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkResident tells how much memory a running exporter holds after a few hundred scrapes in
// turns of text, OpenMetrics and gzip. test/budget has the limit.
func BenchmarkResident(b *testing.B) {
	e := serve(b, nil, "--simulate", "h100x8", "--max-age", "1ms")
	for b.Loop() {
		for range 100 {
			e.get(b, "/metrics", "Accept", "text/plain")
			e.get(b, "/metrics", "Accept", openMetrics)
			e.get(b, "/metrics", "Accept", openMetrics, "Accept-Encoding", "gzip")
		}
	}
	b.ReportMetric(resident(b, e.cmd.Process.Pid), "MiB-resident")
}

// resident is what /proc says, in mebibytes.
func resident(b *testing.B, pid int) float64 {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		b.Skip("resident memory is read from /proc")
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib / 1024
		}
	}
	b.Fatal("no VmRSS")
	return 0
}

// BenchmarkBinary tells how large the stripped binary is. test/budget has the limit.
func BenchmarkBinary(b *testing.B) {
	info, err := os.Stat(binary)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
	}
	b.ReportMetric(float64(info.Size())/1e6, "MB")
}

// BenchmarkGenerate tells how long it takes to make everything from the spec and compare it. The
// budget is 10 s.
func BenchmarkGenerate(b *testing.B) {
	for b.Loop() {
		check := exec.Command("go", "run", "./gen", "-check")
		check.Dir = "../.."
		if out, err := check.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
}
