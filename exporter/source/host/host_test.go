package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/source/sourcetest"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

const stat = `cpu  1000 200 300 40000 50 6 7 8 900 100
cpu0 500 100 150 20000 25 3 4 4 450 50
cpu3 500 100 150 20000 25 3 3 4 450 50
intr 12 0 1 2
ctxt 34
btime 1700000000
processes 56
procs_running 1
procs_blocked 0
softirq 10 1 1 1 1 1 1 1 1 1 1
`

const meminfo = `MemTotal:       16000000 kB
MemFree:         4000000 kB
MemAvailable:    9000000 kB
Buffers:          100000 kB
Cached:          5000000 kB
SwapCached:            0 kB
Shmem:           1000000 kB
HugePages_Total:       0
`

// proc writes a /proc of two files; an empty one is left out.
func proc(t testing.TB, stat, meminfo string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"stat": stat, "meminfo": meminfo} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t testing.TB, proc string) source.HostReader {
	t.Helper()
	r, err := New(Config{Proc: proc}).Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r.(source.HostReader)
}

func readHost(t testing.TB, r source.HostReader) *telemetry.Host {
	t.Helper()
	var h telemetry.Host
	if why := r.ReadHost(context.Background(), &h); why != nil {
		t.Fatal(why)
	}
	return &h
}

func read(t testing.TB, r source.HostReader) *telemetry.System {
	t.Helper()
	return &readHost(t, r).System
}

func TestSpecIsRead(t *testing.T) {
	sourcetest.SpecIsRead(t, "host", telemetry.HostFamilies, readHost(t, open(t, proc(t, stat, meminfo))))
}

func want(t *testing.T, what string, v metric.Value, number float64) {
	t.Helper()
	if got, ok := v.Get(); !ok || got != number {
		t.Errorf("%s = %v (%v), want %v", what, got, v.Why(), number)
	}
}

func TestNumbers(t *testing.T) {
	s := read(t, open(t, proc(t, stat, meminfo)))
	for mode, seconds := range map[telemetry.CPUMode]float64{
		telemetry.CPUModeUser: 10, telemetry.CPUModeNice: 2, telemetry.CPUModeSystem: 3, telemetry.CPUModeIdle: 400,
		telemetry.CPUModeIowait: 0.5, telemetry.CPUModeInterrupt: 0.13, telemetry.CPUModeSteal: 0.08,
	} {
		want(t, mode.String(), s.CPUTime[mode], seconds)
	}
	want(t, "online", s.CPUOnline, 2)
	want(t, "limit", s.MemoryLimit, 16000000*1024)
	want(t, "available", s.MemoryLinuxAvailable, 9000000*1024)
	for state, kb := range map[telemetry.SystemMemoryState]float64{
		telemetry.SystemMemoryStateUsed: 7900000, telemetry.SystemMemoryStateFree: 4000000,
		telemetry.SystemMemoryStateBuffers: 100000, telemetry.SystemMemoryStateCached: 4000000,
	} {
		want(t, state.String(), s.MemoryUsage[state], kb*1024)
	}
}

func TestNoDevices(t *testing.T) {
	r, err := New(Config{Proc: proc(t, stat, meminfo)}).Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if devices, err := r.Devices(context.Background()); len(devices) > 0 || err != nil {
		t.Errorf("Devices = %v, %v; want none", devices, err)
	}
}

func TestNoProc(t *testing.T) {
	_, err := New(Config{Proc: filepath.Join(t.TempDir(), "nowhere")}).Open(context.Background())
	if !errors.Is(err, source.ErrAbsent) {
		t.Errorf("Open without /proc: %v, want %v", err, source.ErrAbsent)
	}
}

// A counter never falls, though the kernel's numbers do.
func TestHighWaterMark(t *testing.T) {
	dir := proc(t, stat, meminfo)
	r := open(t, dir)
	read(t, r)
	for _, step := range []struct {
		iowait string
		want   float64
	}{{" 49 ", 0.5}, {" 50 ", 0.5}, {" 51 ", 0.51}, {" 3 ", 0.51}} {
		text := strings.Replace(stat, " 50 ", step.iowait, 1)
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want(t, "iowait after"+step.iowait, read(t, r).CPUTime[telemetry.CPUModeIowait], step.want)
	}
}

func TestRealProc(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	r := open(t, "")
	before, s := read(t, r), read(t, r)
	for mode := range s.CPUTime {
		a, _ := before.CPUTime[mode].Get()
		if b, ok := s.CPUTime[mode].Get(); !ok || b < a {
			t.Errorf("%s: %v (%v) after %v", telemetry.CPUMode(mode), b, s.CPUTime[mode].Why(), a)
		}
	}
	if n, ok := s.CPUOnline.Get(); !ok || n < float64(runtime.NumCPU()) {
		t.Errorf("%v CPUs online (%v), of which this program may use %d", n, s.CPUOnline.Why(), runtime.NumCPU())
	}
	checkSum(t, s)
}

// checkSum holds a reading to the spec: the states add up to the limit.
func checkSum(t *testing.T, s *telemetry.System) {
	t.Helper()
	var sum float64
	for state := range s.MemoryUsage {
		n, ok := s.MemoryUsage[state].Get()
		if !ok {
			t.Fatalf("%s: %v", telemetry.SystemMemoryState(state), s.MemoryUsage[state].Why())
		}
		sum += n
	}
	want(t, "limit", s.MemoryLimit, sum)
}
