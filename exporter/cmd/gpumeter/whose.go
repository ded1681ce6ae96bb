package main

import (
	"cmp"
	"log/slog"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/attribution/process"
	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// newAttributor says whose work is on the devices.
func newAttributor(c config.Node, log *slog.Logger) *attribution.Attributor {
	processes := &process.Locator{Proc: c.HostProc}
	return attribution.New(attribution.Config{
		Place: func(pid int64) (attribution.Workload, string, bool) {
			p, err := processes.Locate(pid)
			if err != nil || p.Helper {
				return attribution.Workload{}, "", false
			}
			w, how := workloadOf(p)
			return w, how, w != attribution.Workload{}
		},
		Limit: c.SeriesLimit, Join: c.Labels == "join", Logger: log,
	})
}

// workloadOf says whose work a process does, as far as its place alone tells: not the pod's name,
// nor the user of a job.
func workloadOf(p process.Process) (w attribution.Workload, how string) {
	const short = 12 // digits of a container's id, as its runtime's tools print it
	switch {
	case p.Job != "" || p.SLUID != "":
		return attribution.Workload{Type: telemetry.WorkloadTypeSlurm, Job: cmp.Or(p.Job, p.SLUID)}, "cgroup of the job"
	case p.Pod != "":
		return attribution.Workload{}, "" // the kubelet knows its name
	case p.Container != "":
		return attribution.Workload{Type: telemetry.WorkloadTypeUnit, Unit: cmp.Or(p.Runtime, "container") + "/" + p.Container[:short]}, "cgroup of the container"
	case p.Unit != "":
		return attribution.Workload{Type: telemetry.WorkloadTypeUnit, Unit: p.Unit}, "cgroup of the unit"
	default:
		return attribution.Workload{Type: telemetry.WorkloadTypeProcess, Unit: p.Command}, "command of the process"
	}
}
