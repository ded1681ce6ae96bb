//go:build cgo

package nvml

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// processes are those that use one device, with their labels made once.
type processes struct {
	known map[user]*metric.Labels
	seen  uint64 // timestamp of the newest utilization sample, µs of the driver's clock
}

// user is a process as the driver lists it: on the device, or on a MIG instance of it.
type user struct {
	pid       uint32
	gpu, work uint32 // MIG ids; all ones without MIG
}

// read lists the processes, the largest by memory first and no more than are wanted.
func (x *processes) read(p *pass, out *telemetry.Device) {
	held := map[user]uint64{}
	listed := false
	for _, list := range []struct {
		q   question
		ask func() ([]nvml.ProcessInfo, nvml.Return)
	}{
		{askCompute, p.dev.GetComputeRunningProcesses},
		{askGraphics, p.dev.GetGraphicsRunningProcesses},
		{askMPS, p.dev.GetMPSComputeRunningProcesses},
	} {
		all, why := call(p, list.q, 0, list.ask)
		listed = listed || why == nil
		for _, one := range all { // a process may be in several lists
			u := user{one.Pid, one.GpuInstanceId, one.ComputeInstanceId}
			if n, twice := held[u]; !twice || n == math.MaxUint64 || one.UsedGpuMemory != math.MaxUint64 && one.UsedGpuMemory > n {
				held[u] = one.UsedGpuMemory
			}
		}
	}
	if !listed {
		return
	}
	loads, why := x.loads(p)
	users := make([]user, 0, len(held))
	for u := range held {
		users = append(users, u)
	}
	slices.SortFunc(users, func(a, b user) int {
		return cmp.Or(cmp.Compare(held[b]+1, held[a]+1), cmp.Compare(a.pid, b.pid), cmp.Compare(a.gpu, b.gpu), cmp.Compare(a.work, b.work)) // all ones, not known, comes last
	})
	users = users[:min(len(users), p.h.reader.mostProcesses)]
	known := make(map[user]*metric.Labels, len(users))
	parts := slices.Grow(out.Processes[:0], len(users))[:len(users)]
	for i, u := range users {
		known[u] = x.known[u]
		if known[u] == nil {
			known[u] = p.h.processLabels(u)
		}
		parts[i] = telemetry.Part[telemetry.Process]{Labels: known[u]}
		to := &parts[i].Read.Processes
		put(&to.MemoryUsage, nil, bytes, whole, held[u])
		if held[u] == math.MaxUint64 {
			to.MemoryUsage.Fail(metric.NoData)
		}
		load, there := loads[u.pid]
		switch {
		case why != nil:
			to.Utilization.Fail(why)
		case !there:
			to.Utilization.Fail(metric.NoData)
		default:
			put(&to.Utilization, nil, ratio, percent, load)
		}
	}
	x.known = known
	out.Processes = parts
}

// loads are the newest utilization samples, by process.
func (x *processes) loads(p *pass) (map[uint32]uint32, *metric.Reason) {
	samples, why := call(p, askProcessUse, 0, func() ([]nvml.ProcessUtilizationSample, nvml.Return) {
		all, ret := p.dev.GetProcessUtilization(x.seen)
		if ret == nvml.ERROR_NOT_FOUND || ret == nvml.ERROR_INSUFFICIENT_SIZE { // nothing new
			ret = nvml.ERROR_NO_DATA
		}
		return all, ret
	})
	if why != nil {
		return nil, why
	}
	loads, at := map[uint32]uint32{}, map[uint32]uint64{}
	for _, s := range samples {
		if s.TimeStamp >= at[s.Pid] {
			at[s.Pid], loads[s.Pid] = s.TimeStamp, s.SmUtil
		}
		x.seen = max(x.seen, s.TimeStamp)
	}
	return loads, nil
}

func (h *handle) processLabels(u user) *metric.Labels {
	a := telemetry.ProcessAttributes{ProcessPid: int64(u.pid), ProcessExecutableName: command(h.reader.proc, u.pid)}
	for _, one := range h.parts.now {
		if one.gpu == int(u.gpu) && one.work == int(u.work) {
			a.PartitionUUID = one.uuid
		}
	}
	return a.Labels()
}

// command is the name of a process of the host, empty where its /proc is not seen.
func command(proc string, pid uint32) string {
	name, err := os.ReadFile(filepath.Join(proc, strconv.FormatUint(uint64(pid), 10), "comm")) // the kernel keeps 16 bytes
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}
