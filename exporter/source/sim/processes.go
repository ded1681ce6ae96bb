package sim

import (
	"cmp"
	"slices"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// process is the program of one of a duty's jobs.
type process struct {
	cycle  int64
	job    int // of the cycle
	pid    int64
	labels *metric.Labels
}

// follow finds the process of the job that is at work; its number is another for each job.
func (p *process) follow(d *duty, cycle int64, partition string) {
	if p.labels != nil && p.cycle == cycle && p.job == d.next {
		return
	}
	const first, last = 2000, 1<<22 - 1 // Linux has no higher ones
	pid := between(mix(d.plan.seed, 'p', uint64(cycle), uint64(d.next)), first, last)
	*p = process{cycle, d.next, pid, telemetry.ProcessAttributes{
		PartitionUUID: partition, ProcessPid: pid, ProcessExecutableName: "python3",
	}.Labels()}
}

// readProcesses tells of the jobs' processes, each of which has all the memory of its board or
// partition that is in use, the largest first. Of partitions the driver does not know who is busy.
func (d *device) readProcesses() []telemetry.Part[telemetry.Process] {
	if d.board.vendor != nvidia {
		return nil
	}
	var all []telemetry.Part[telemetry.Process]
	for i := range d.physics.duties {
		duty, partition := &d.physics.duties[i], ""
		used := duty.used(d.physics.tick)
		if used == 0 {
			continue
		}
		if len(d.partitions) > 0 {
			partition = d.partitions[i].uuid
		}
		d.processes[i].follow(duty, d.physics.cycle, partition)
		if all == nil {
			all = make([]telemetry.Part[telemetry.Process], 0, len(d.physics.duties))
		}
		one := telemetry.Part[telemetry.Process]{Labels: d.processes[i].labels}
		one.Read.Processes.MemoryUsage.Set(float64(used))
		tell(&one.Read.Processes.Utilization, partition == "", float64(duty.load.busy)*percent)
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b telemetry.Part[telemetry.Process]) int {
		x, _ := a.Read.Processes.MemoryUsage.Get()
		y, _ := b.Read.Processes.MemoryUsage.Get()
		return cmp.Compare(y, x)
	})
	return all
}
