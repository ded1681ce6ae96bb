package sim

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// divided says what is wrong between a board, its partitions and the processes on both.
func divided(d *device, x *telemetry.Device) (wrong []string) {
	get := func(v metric.Value) float64 { n, _ := v.Get(); return n }
	want := func(ok bool, format string, a ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, a...))
		}
	}
	var limit, usage, reserved, slices, engine, seconds float64
	of := map[string]float64{} // memory in use, by partition
	for i := range x.Partitions {
		p, profile := &x.Partitions[i].Read.Partitions, &x.Partitions[i].Read.Profiling
		name := x.Partitions[i].Labels.Get("gpu_partition_id")
		want(get(p.MemoryUsage)+get(p.MemoryFree)+get(p.MemoryReserved) == get(p.MemoryLimit) && get(p.MemoryFree) >= 0,
			"memory of %s: %v + %v + %v is not %v", name, get(p.MemoryUsage), get(p.MemoryFree), get(p.MemoryReserved), get(p.MemoryLimit))
		limit, usage, reserved = limit+get(p.MemoryLimit), usage+get(p.MemoryUsage), reserved+get(p.MemoryReserved)
		slices += get(p.Slices)
		engine += get(profile.GrEngineActive) * get(p.Slices) / 7
		seconds += get(profile.GrEngineActiveTime) * get(p.Slices) / 7
		wrong = append(wrong, filled(profile)...)
		of[x.Partitions[i].Labels.Get("gpu_partition_uuid")] = get(p.MemoryUsage)
	}
	if len(x.Partitions) == 0 {
		of[""] = get(x.Memory.Usage)
	} else {
		want(limit <= get(x.Memory.Limit) && reserved <= get(x.Memory.Reserved), "partitions have %v B of %v", limit, get(x.Memory.Limit))
		want(usage == get(x.Memory.Usage), "partitions use %v B, the board %v", usage, get(x.Memory.Usage))
		want(slices == 7, "%v slices of 7", slices)
		want(math.Abs(engine-get(x.Profiling.GrEngineActive)) < 1e-9, "partitions are active for %v, the board for %v", engine, get(x.Profiling.GrEngineActive))
		want(math.Abs(seconds-get(x.Profiling.GrEngineActiveTime)) < 1e-6*max(1, seconds),
			"partitions were active for %v s, the board for %v", seconds, get(x.Profiling.GrEngineActiveTime))
	}
	last := math.Inf(1)
	for i := range x.Processes {
		uuid := x.Processes[i].Labels.Get("gpu_partition_uuid")
		memory := get(x.Processes[i].Read.Processes.MemoryUsage)
		want(memory > 0 && memory == of[uuid], "a process holds %v B of the %v B in use on %q", memory, of[uuid], uuid)
		want(memory <= last, "a process of %v B after one of %v", memory, last)
		of[uuid], last = 0, memory
	}
	if d.board.vendor == nvidia {
		for uuid, memory := range of {
			want(memory == 0, "%v B on %q are held by no process", memory, uuid)
		}
	}
	return wrong
}

// A board that is split is an H100 cut into sizes that fill it; its partitions have names of their
// own, which are the same after the source was opened again.
func TestPartitions(t *testing.T) {
	uuid := regexp.MustCompile(`^MIG-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	look := func() (all []string) {
		_, devices := start(t, "h100migx2,h100x1", 7)
		for _, d := range devices {
			x := read(t, d)
			if id := d.Identity(); id.Model != "Simulated NVIDIA H100 80GB HBM3" || id.PartNumber != "SIM-H100" {
				t.Errorf("an H100 is a %s, %s", id.Model, id.PartNumber)
			}
			var sizes []string
			for _, p := range x.Partitions {
				if id := p.Labels.Get("gpu_partition_uuid"); !uuid.MatchString(id) {
					t.Errorf("partition %q", id)
				}
				sizes = append(sizes, p.Labels.Get("gpu_partition_profile")+" "+p.Labels.Get("gpu_partition_id"))
				all = append(all, p.Labels.Get("gpu_partition_uuid"))
			}
			want := ""
			if len(d.(*device).board.parts) > 0 {
				want = "3g.40gb 1/0, 2g.20gb 3/0, 1g.10gb 7/0, 1g.10gb 8/0"
			}
			if got := strings.Join(sizes, ", "); got != want {
				t.Errorf("split into %s; want %s", got, want)
			}
		}
		return all
	}
	first, again := look(), look()
	seen := map[string]bool{}
	for i, id := range first {
		if seen[id] || id != again[i] {
			t.Errorf("partition %d is %s, before %s", i, again[i], id)
		}
		seen[id] = true
	}
}

// Partitions work each for itself: not all at the same time, and none over NVLink.
func TestPartitionsWorkAlone(t *testing.T) {
	c, devices := start(t, "h100migx1", 2)
	apart := 0
	for at := time.Duration(0); at < 2*time.Hour; at += 20 * time.Second {
		c.moveTo(at)
		x := read(t, devices[0])
		busy := 0
		for i := range x.Partitions {
			if number(t, x.Partitions[i].Read.Profiling.GrEngineActive) > 0 {
				busy++
			}
		}
		if busy > 0 && busy < len(x.Partitions) {
			apart++
		}
		for _, l := range linksOf(x, telemetry.LinkTypeNvlink) {
			if number(t, l.Io[transmit]) != 0 {
				t.Fatalf("a partition used NVLink")
			}
		}
	}
	if apart == 0 {
		t.Error("partitions always work at once")
	}
}

// A process lives as long as its job, and is another on each board and for each job.
func TestProcesses(t *testing.T) {
	c, devices := start(t, "h100x2", 1)
	jobs := devices[0].(*device).physics.plan.jobs
	pid := func(d int, tick int64) string {
		c.moveTo(time.Duration(tick) * time.Second)
		x := read(t, devices[d])
		if len(x.Processes) == 0 {
			return ""
		}
		if name := x.Processes[0].Labels.Get("process_executable_name"); name != "python3" {
			t.Errorf("a process named %q", name)
		}
		if got, want := number(t, x.Processes[0].Read.Processes.Utilization), number(t, x.Utilization.Utilization); got != want {
			t.Errorf("its process is busy for %v, the board for %v", got, want)
		}
		return x.Processes[0].Labels.Get("process_pid")
	}
	begin, end := pid(0, jobs[0].from+5), pid(0, jobs[0].to-1)
	between := pid(0, jobs[0].to)
	other := pid(1, jobs[1].from+5)
	next := pid(0, jobs[1].from+6)
	later := pid(0, cycleTicks+jobs[0].from+5)
	if begin == "" || begin != end || between != "" || other == "" || next == "" || next == begin || next == other || later == begin || later == "" {
		t.Errorf("processes %s and %s of the first job, %q after it, %s and %s of the second, %s in the next cycle", begin, end, between, other, next, later)
	}
}
