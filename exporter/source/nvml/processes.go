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

// user is a process on the device, or on a MIG instance of it.
type user struct {
	pid       uint32
	partition string // UUID; empty without MIG, and where the instance is not known
}

// spot is where the driver says that a process is, by MIG ids; all ones without MIG.
type spot struct{ pid, gpu, work uint32 }

// read lists the processes, the largest by memory first and no more than are wanted.
func (x *processes) read(p *pass, out *telemetry.Device) {
	at, listed := map[spot]uint64{}, map[uint32]bool{}
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
		if why != nil {
			continue
		}
		answered = true
		for _, one := range all { // a process may be in several lists
			listed[one.Pid] = true
			where := spot{one.Pid, one.GpuInstanceId, one.ComputeInstanceId}
			if n, twice := at[where]; !twice || n == math.MaxUint64 || one.UsedGpuMemory != math.MaxUint64 && one.UsedGpuMemory > n {
				at[where] = one.UsedGpuMemory
			}
		}
	}
	if !answered {
		return
	}
	if x.taken.IsZero() {
		x.sample(p)
	}
	held := p.h.users(at)
	users := make([]user, 0, len(held))
	for u := range held {
		users = append(users, u)
	}
	slices.SortFunc(users, func(a, b user) int {
		return cmp.Or(cmp.Compare(held[b]+1, held[a]+1), cmp.Compare(a.pid, b.pid), cmp.Compare(a.partition, b.partition)) // all ones, not known, comes last
	})
	users = users[:min(len(users), p.h.reader.mostProcesses)]
	known := make(map[user]*metric.Labels, len(users))
	parts := slices.Grow(out.Processes[:0], len(users))[:len(users)]
	if parts == nil { // that nobody uses the device is known
		parts = []telemetry.Part[telemetry.Process]{}
	}
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

// sample takes in the driver's newest utilization samples: one for each process that worked in its
// last period of about a second. It stands for all of the time since the last look, so looks go by
// the sampler alone, however often the device is read.
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
		if s.TimeStamp >= at[s.Pid] {
			at[s.Pid], x.loads[s.Pid] = s.TimeStamp, s.SmUtil
		}
		x.seen = max(x.seen, s.TimeStamp)
	}
	for pid, load := range x.loads {
		if load <= 100 {
			x.busy[pid] += float64(load) * scaleProcessesBusyTime * span.Seconds()
		}
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
		put(&to.Utilization, nil, ratio, scaleProcessesUtilization, load)
	} else {
		to.Utilization.Fail(metric.NoData)
	}
}

// users adds up what a process holds in places that have one name, so that no series stands twice.
func (h *handle) users(at map[spot]uint64) map[user]uint64 {
	held := make(map[user]uint64, len(at))
	for x, n := range at {
		u := user{pid: x.pid}
		for _, one := range h.parts.now {
			if one.gpu == int(x.gpu) && one.work == int(x.work) {
				u.partition = one.uuid
			}
		}
		before, twice := held[u]
		switch {
		case !twice, before == math.MaxUint64:
			held[u] = n
		case n != math.MaxUint64:
			held[u] = before + n
		}
	}
	return held
}

func (h *handle) processLabels(u user) *metric.Labels {
	return telemetry.ProcessAttributes{
		ProcessPid: int64(u.pid), ProcessExecutableName: command(h.reader.proc, u.pid), PartitionUUID: u.partition,
	}.Labels()
}

// command is the name of a process of the host, empty where its /proc is not seen.
func command(proc string, pid uint32) string {
	name, err := os.ReadFile(filepath.Join(proc, strconv.FormatUint(uint64(pid), 10), "comm")) // the kernel keeps 16 bytes
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}
