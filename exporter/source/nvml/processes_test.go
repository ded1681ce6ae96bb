//go:build cgo

package nvml

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

const (
	unknown = 1<<64 - 1 // memory that is not told
	noMIG   = 1<<32 - 1
)

// using is a process as the driver lists it.
func using(pid uint32, bytes uint64) nvml.ProcessInfo { return usingPart(pid, bytes, noMIG, noMIG) }

func usingPart(pid uint32, bytes uint64, gpu, work uint32) nvml.ProcessInfo {
	return nvml.ProcessInfo{Pid: pid, UsedGpuMemory: bytes, GpuInstanceId: gpu, ComputeInstanceId: work}
}

// used is one device with processes, at most four of which are told, and a /proc that knows some.
type used struct {
	*node
	h                       *handle
	d                       *fakeDevice
	compute, graphics, mps  []nvml.ProcessInfo
	computeRet, graphicsRet nvml.Return
	loads                   []nvml.ProcessUtilizationSample
	loadsRet                nvml.Return
	since                   []uint64 // what samples were asked for
	proc                    string
}

func use(t *testing.T) *used {
	t.Helper()
	u := &used{d: answering("GPU-0"), proc: t.TempDir()}
	u.d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) { return u.compute, u.computeRet }
	u.d.GetGraphicsRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) { return u.graphics, u.graphicsRet }
	u.d.GetMPSComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) { return u.mps, nvml.SUCCESS }
	u.d.GetProcessUtilizationFunc = func(since uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) {
		u.since = append(u.since, since)
		return u.loads, u.loadsRet
	}
	cfg := config()
	cfg.Proc, cfg.Processes = u.proc, 4
	r, err := open(newFakeLibrary(u.d), cfg, newArchive(), everything())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, r) })
	u.node = &node{TB: t, reader: r}
	u.h = u.list()[0]
	return u
}

// runs puts a process into /proc.
func (u *used) runs(pid uint32, name string) {
	u.Helper()
	dir := filepath.Join(u.proc, fmt.Sprint(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		u.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "comm"), []byte(name+"\n"), 0o644); err != nil {
		u.Fatal(err)
	}
}

// processes are those told, each as one line: labels, memory, utilization.
func (u *used) processes() []string {
	u.Helper()
	var out []string
	u.h.Sample(u.Context())
	for _, p := range u.read(u.h).Processes {
		text := func(v metric.Value) string {
			if n, ok := v.Get(); ok {
				return fmt.Sprint(n)
			}
			return v.Why().Text
		}
		out = append(out, fmt.Sprintf("%s: %s, %s", p.Labels.Text(), text(p.Read.Processes.MemoryUsage), text(p.Read.Processes.Utilization)))
	}
	return out
}

func (u *used) tells(what string, want ...string) {
	u.Helper()
	if got := u.processes(); !slices.Equal(got, want) {
		u.Errorf("%s:\n%s\nwant:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A process in several lists is one, with the most memory any of them tells of it.
func TestProcessesOfSeveralLists(t *testing.T) {
	u := use(t)
	u.tells("none")
	u.runs(10, "python3")
	u.runs(30, "nvidia-cuda-mps\n")
	u.compute = []nvml.ProcessInfo{using(10, 500), using(20, unknown), using(40, 100)}
	u.graphics = []nvml.ProcessInfo{using(10, 700), using(20, 300), using(40, unknown)}
	u.mps = []nvml.ProcessInfo{using(30, 600), using(10, 600)}
	u.loadsRet = nvml.ERROR_NOT_FOUND
	u.tells("three lists",
		`process_pid="10",process_executable_name="python3": 700, no data yet`, `process_pid="30",process_executable_name="nvidia-cuda-mps": 600, no data yet`,
		`process_pid="20": 300, no data yet`, `process_pid="40": 100, no data yet`)
	u.graphicsRet = nvml.ERROR_NOT_SUPPORTED
	u.tells("one list less",
		`process_pid="10",process_executable_name="python3": 600, no data yet`, `process_pid="30",process_executable_name="nvidia-cuda-mps": 600, no data yet`,
		`process_pid="40": 100, no data yet`, `process_pid="20": no data yet, no data yet`)
}

// No more are told than are wanted: the largest, and of equals those with the lowest number.
func TestMostProcesses(t *testing.T) {
	u := use(t)
	u.loadsRet = nvml.ERROR_NOT_FOUND
	u.compute = []nvml.ProcessInfo{using(9, 100), using(1, unknown), using(8, 300), using(3, 100), using(2, 0), using(5, 200), using(7, 100)}
	u.tells("seven", `process_pid="8": 300, no data yet`, `process_pid="5": 200, no data yet`, `process_pid="3": 100, no data yet`, `process_pid="7": 100, no data yet`)
	u.compute = u.compute[:2]
	u.tells("two", `process_pid="9": 100, no data yet`, `process_pid="1": no data yet, no data yet`)
}

// A process on a MIG instance says on which; on two, it is told twice and of each for itself.
func TestProcessesOfPartitions(t *testing.T) {
	u := use(t)
	u.d.cut(part("MIG-a", "1g.10gb", 7, 0), part("MIG-b", "1c.3g.40gb", 2, 1))
	u.loadsRet = nvml.ERROR_NOT_SUPPORTED
	u.compute = []nvml.ProcessInfo{usingPart(10, 500, 7, 0), usingPart(10, 400, 2, 1), usingPart(20, 300, 2, 1)}
	u.tells("on two", `gpu_partition_uuid="MIG-a",process_pid="10": 500, not supported`, `gpu_partition_uuid="MIG-b",process_pid="10": 400, not supported`,
		`gpu_partition_uuid="MIG-b",process_pid="20": 300, not supported`)
	// One series may not stand twice.
	u.compute = []nvml.ProcessInfo{usingPart(10, 500, 3, 0), usingPart(10, 400, 4, 0), usingPart(20, unknown, 3, 0), usingPart(20, 7, 4, 0)}
	u.tells("on two that are not listed", `process_pid="10": 900, not supported`, `process_pid="20": 7, not supported`)
	u.d.cut(part("MIG-c", "1g.10gb", 3, 0))
	u.compute = []nvml.ProcessInfo{usingPart(20, 5, 3, 0)}
	u.tells("on one that has come", `gpu_partition_uuid="MIG-c",process_pid="20": 5, not supported`)
}

// The newest sample of each process is its utilization, and only newer ones are asked for.
func TestProcessUtilization(t *testing.T) {
	u := use(t)
	u.compute = []nvml.ProcessInfo{using(10, 5), using(20, 4), using(30, 3), using(40, 2)}
	u.loads = []nvml.ProcessUtilizationSample{
		{Pid: 10, TimeStamp: 2000, SmUtil: 50}, {Pid: 10, TimeStamp: 1000, SmUtil: 90}, {Pid: 20, TimeStamp: 1500}, {Pid: 30, TimeStamp: 3000, SmUtil: 808334905},
	}
	u.tells("with samples", `process_pid="10": 5, 0.5`, `process_pid="20": 4, 0`, `process_pid="30": 3, implausible`, `process_pid="40": 2, no data yet`)
	for ret, why := range map[nvml.Return]string{
		nvml.ERROR_NOT_FOUND: "no data yet", nvml.ERROR_INSUFFICIENT_SIZE: "no data yet", nvml.ERROR_UNKNOWN: "nvml: unknown error",
	} {
		u.loads, u.loadsRet = nil, ret
		u.compute = u.compute[:1]
		u.tells(ret.Error(), `process_pid="10": 5, `+why)
	}
	if !slices.Equal(u.since[:2], []uint64{0, 3000}) {
		t.Errorf("asked for samples after %v", u.since)
	}
}

// Processes come and go; those that stay keep the labels made of them.
func TestProcessesComeAndGo(t *testing.T) {
	u := use(t)
	u.loadsRet = nvml.ERROR_NOT_FOUND
	labels := map[uint32]*metric.Labels{}
	for round := range uint32(50) {
		u.compute = nil
		for pid := round; pid < round+4; pid++ {
			u.runs(pid, fmt.Sprint("worker-", pid))
			u.compute = append(u.compute, using(pid, uint64(1000-pid)))
		}
		out := u.read(u.h).Processes
		if len(out) != 4 {
			t.Fatalf("%d processes", len(out))
		}
		for i, p := range out {
			pid := round + uint32(i)
			if got, want := p.Labels.Text(), fmt.Sprintf(`process_pid="%d",process_executable_name="worker-%d"`, pid, pid); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if labels[pid] != nil && labels[pid] != p.Labels {
				t.Errorf("labels of %d are made again", pid)
			}
			labels[pid] = p.Labels
		}
	}
	if n := len(u.h.people.known); n != 4 {
		t.Errorf("%d processes are kept, want 4", n)
	}
}

// Where no list can be had, nothing is told; an empty list is something.
func TestNoProcesses(t *testing.T) {
	u := use(t)
	if p := u.read(u.h).Processes; p == nil || len(p) != 0 {
		t.Errorf("of a device nobody uses: %v, want an empty list", p)
	}
	u.d.GetMPSComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) { return nil, nvml.ERROR_NOT_SUPPORTED }
	u.computeRet, u.graphicsRet = nvml.ERROR_NO_PERMISSION, nvml.ERROR_UNKNOWN
	u.since = nil
	if p := u.read(u.h).Processes; p != nil || len(u.since) != 0 {
		t.Errorf("of a device that does not tell: %v, and its utilization was asked %d times", p, len(u.since))
	}
}
