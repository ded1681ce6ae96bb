//go:build cgo

package nvml

import (
	"cmp"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// processes are those that use one device, with their labels made once.
type processes struct {
	known map[user]*metric.Labels
	busy  map[uint32]float64 // seconds since each was first seen
	loads map[uint32]uint32  // percent, in the driver's last sample period
	seen  uint64             // timestamp of the newest utilization sample, µs of the driver's clock
	taken time.Time          // when they were last taken in
	why   *metric.Reason     // the driver gives none
}

// user is a process as the driver lists it: on the device, or on a MIG instance of it.
type user struct {
	pid       uint32
	gpu, work uint32 // MIG ids; all ones without MIG
}

// read lists the processes, the largest by memory first and no more than are wanted.
func (x *processes) read(p *pass, out *telemetry.Device) {
	held, listed := map[user]uint64{}, map[uint32]bool{}
	answered := false
	for _, list := range []struct {
		q   question
		ask func() ([]nvml.ProcessInfo, nvml.Return)
	}{
		{askCompute, p.dev.GetComputeRunningProcesses},
		{askGraphics, p.dev.GetGraphicsRunningProcesses},
		{askMPS, p.dev.GetMPSComputeRunningProcesses},
	} {
		all, why := call(p, list.q, 0, list.ask)
		answered = answered || why == nil
		for _, one := range all { // a process may be in several lists
			u := user{one.Pid, one.GpuInstanceId, one.ComputeInstanceId}
			listed[u.pid] = true
			if n, twice := held[u]; !twice || n == math.MaxUint64 || one.UsedGpuMemory != math.MaxUint64 && one.UsedGpuMemory > n {
				held[u] = one.UsedGpuMemory
			}
		}
	}
	if !answered {
		return
	}
	x.sample(p)
	users := make([]user, 0, len(held))
	for u := range held {
		users = append(users, u)
	}
	slices.SortFunc(users, func(a, b user) int {
		return cmp.Or(cmp.Compare(held[b]+1, held[a]+1), cmp.Compare(a.pid, b.pid), cmp.Compare(a.gpu, b.gpu), cmp.Compare(a.work, b.work)) // all ones, not known, comes last
	})
	users = users[:min(len(users), p.h.reader.mostProcesses)]
	known := make(map[user]*metric.Labels, len(users))
	parts := slices.Grow(out.Processes[:0], len(users)+1)[:len(users)] // not nil: that there is none is known
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
		x.tell(to, u.pid)
	}
	maps.DeleteFunc(x.busy, func(pid uint32, _ float64) bool { return !listed[pid] })
	x.known = known
	out.Processes = parts
}

// longestLook is the longest time one sample of a process speaks for.
const longestLook = 2 * samplePeriod

// sample takes in the driver's newest utilization samples: one for each process that worked, which
// says how much of the time since the last look.
func (x *processes) sample(p *pass) {
	samples, why := call(p, askProcessUse, 0, func() ([]nvml.ProcessUtilizationSample, nvml.Return) {
		all, ret := p.dev.GetProcessUtilization(x.seen)
		if ret == nvml.ERROR_NOT_FOUND || ret == nvml.ERROR_INSUFFICIENT_SIZE { // nothing new
			ret = nvml.ERROR_NO_DATA
		}
		return all, ret
	})
	now := time.Now()
	span := now.Sub(x.taken)
	if x.taken.IsZero() || span > longestLook {
		span = 0 // nothing is known of the time between
	}
	x.taken, x.why = now, why
	clear(x.loads)
	if why == metric.NoData { // nobody worked
		x.why = nil
	}
	if why != nil {
		return
	}
	if x.loads == nil {
		x.loads, x.busy = map[uint32]uint32{}, map[uint32]float64{}
	}
	at := map[uint32]uint64{}
	for _, s := range samples {
		if s.SmUtil <= 100 && s.TimeStamp >= at[s.Pid] {
			at[s.Pid], x.loads[s.Pid] = s.TimeStamp, s.SmUtil
		}
		x.seen = max(x.seen, s.TimeStamp)
	}
	for pid, load := range x.loads {
		x.busy[pid] += float64(load) * percent * span.Seconds()
	}
}

// tell writes what is known of how much a process worked.
func (x *processes) tell(to *telemetry.Processes, pid uint32) {
	if x.why != nil {
		to.Utilization.Fail(x.why)
		to.BusyTime.Fail(x.why)
		return
	}
	to.BusyTime.Set(x.busy[pid])
	if load, there := x.loads[pid]; there {
		to.Utilization.Set(float64(load) * percent)
	} else {
		to.Utilization.Fail(metric.NoData)
	}
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
