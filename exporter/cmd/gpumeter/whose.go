package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/attribution/process"
	"github.com/gpumeter/gpumeter/exporter/attribution/slurm"
	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/doctor"
	"github.com/gpumeter/gpumeter/exporter/self"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/source/sim"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// witnesses say whose work it is.
type witnesses struct {
	claims []func([]attribution.DeviceRef) []attribution.Claim
	place  func(pid int64) (attribution.Workload, string, bool)
	run    []provider // what they do in the background

	examine []func() []doctor.Witness // how each is
	target  func() self.Target        // the machine; nil: nobody knows anything of it
	strays  func([]snapshot.Device) []doctor.Stray
	tell    []func(*snapshot.Snapshot, *self.Attribution) // the same for our own series
}

// provider is a provider of owners that runs in the background.
type provider struct {
	names func() []string // those of its parts that have not ended
	run   func(context.Context)
}

// newAttributor says whose work is on the devices.
func newAttributor(c config.Node, who witnesses, log *slog.Logger) *attribution.Attributor {
	return attribution.New(attribution.Config{
		Claims: who.claims, Place: who.place, Hold: c.WorkloadHold, Keep: c.WorkloadKeep, Limit: c.SeriesLimit,
		Await: c.Kubernetes.APIJitter + time.Minute, // the first question, and one more where that fails
		Join:  c.Labels == "join", Logger: log,
	})
}

// onHost asks this machine.
func onHost(c config.Node, log *slog.Logger) (witnesses, error) {
	pods, err := newMembership(c.Kubernetes, log)
	if err != nil {
		return witnesses{}, err
	}
	processes := &process.Locator{Proc: c.HostProc}
	mapping := &slurm.Directory{Path: c.SlurmJobMapping, Logger: log} // of nothing, where none is given
	out := witnesses{place: func(pid int64) (attribution.Workload, string, bool) {
		var pod podOfProcess
		if pods.here() {
			pod = func(p process.Process) (attribution.Workload, string, bool) { return podOf(pods, p) }
		}
		return located(processes, pid, mapping.Job, pod)
	}}
	out.tell = append(out.tell, func(_ *snapshot.Snapshot, to *self.Attribution) { tellOfProcesses(processes, to) })
	if c.SlurmJobMapping != "" {
		numbers := newNumbering(c.SlurmGPUs)
		out.run = append(out.run, provider{func() []string { return []string{"slurm"} }, mapping.Run})
		out.examine = append(out.examine, func() []doctor.Witness { return []doctor.Witness{doctor.Slurm(mapping.State())} })
		out.tell = append(out.tell, func(_ *snapshot.Snapshot, to *self.Attribution) { tellOfJobs(mapping, to) })
		out.claims = append(out.claims, func(devices []attribution.DeviceRef) []attribution.Claim {
			claims, absent := jobClaims(mapping.Entries(), devices, numbers)
			mapping.Absent(absent)
			return claims
		})
	}
	out.run = append(out.run, provider{pods.Running, pods.Run})
	out.target = func() self.Target { return targetOf(pods.Node()) }
	out.examine = append(out.examine, func() []doctor.Witness {
		if !pods.here() {
			return []doctor.Witness{doctor.NoKubelet(pods.directory)}
		}
		return doctor.Kubernetes(pods)
	})
	out.tell = append(out.tell, func(s *snapshot.Snapshot, to *self.Attribution) {
		if pods.here() {
			tellOfPods(pods.Client, s, c.HostSys, to)
		}
	})
	out.strays = func(devices []snapshot.Device) []doctor.Stray { return strays(pods, devices, c.HostSys) }
	out.claims = append(out.claims, func(devices []attribution.DeviceRef) []attribution.Claim { return podClaims(pods, devices) })
	return out, nil
}

// podOfProcess tells whose work a process in a pod does; nil: nobody knows pods.
type podOfProcess func(process.Process) (attribution.Workload, string, bool)

// located returns the workload of the process with this PID. The place decides first: a process of a pod, a
// job or a user is that owner's, whatever it says it is.
func located(processes *process.Locator, pid int64, job jobOf, pod podOfProcess) (attribution.Workload, string, bool) {
	p, err := processes.Locate(pid)
	if err != nil || p.Helper {
		return attribution.Workload{}, unplaced(err), false
	}
	if p.MPS {
		return attribution.Workload{}, attribution.Proxy, false
	}
	return placed(p, job, pod)
}

// placed returns the workload of a process. A pod that is not known yet is unattributed until it is: what it
// does must not be booked under another name first. Of a process in a pod the control group is the pod's
// own word on its job; attribution believes it only among the jobs that hold the device in this pod.
func placed(p process.Process, job jobOf, pod podOfProcess) (attribution.Workload, string, bool) {
	if p.Pod != "" && pod != nil {
		in, how, ok := pod(p)
		if !ok {
			return in, how, false
		}
		if known, listed := job(p.Job, p.SLUID); listed {
			in = jobWorkload(known).Inside(in)
		}
		return in, how, true
	}
	w, how := workloadOf(p, job)
	if w == (attribution.Workload{}) {
		return w, doctor.NoPod, false
	}
	return w, how, true
}

// unplaced says why a process is not placed; without an error, it is one of Slurm's own.
func unplaced(err error) string {
	switch {
	case err == nil:
		return doctor.OfSlurm
	case errors.Is(err, process.ErrGone):
		return doctor.NotSeen
	case errors.Is(err, process.ErrHidden), errors.Is(err, process.ErrDenied):
		return doctor.NotRead
	case errors.Is(err, process.ErrFiles):
		return doctor.NoFiles
	case errors.Is(err, process.ErrHanging):
		return doctor.Hanging
	}
	return doctor.NoSense
}

// things are the device, or the partitions of a GPU instance of it.
func things(d *attribution.DeviceRef, instance string) []attribution.Thing {
	if instance == "" {
		return []attribution.Thing{{Device: d.UUID}}
	}
	var out []attribution.Thing
	for i := range d.Partitions {
		l := d.Partitions[i].Labels
		if id, _, _ := strings.Cut(l.Get("gpu_partition_id"), "/"); id == instance && l.Get("gpu_partition_uuid") != "" {
			out = append(out, attribution.Thing{Device: d.UUID, Partition: l.Get("gpu_partition_uuid")})
		}
	}
	return out
}

// onSimulated asks the simulated node, whose processes are none of this machine's.
func onSimulated(tenants *sim.Tenants) witnesses {
	const how = "simulated"
	workload := func(t sim.Tenant) attribution.Workload {
		if t.Job != "" {
			return attribution.Workload{Type: telemetry.WorkloadTypeSlurm, Job: t.Job, User: t.User, Account: t.Account, Partition: t.Queue}
		}
		return attribution.Workload{
			Type: telemetry.WorkloadTypeKubernetes, Namespace: t.Namespace, Pod: t.Pod, Container: t.Container, Kind: t.Kind, Name: t.Name,
		}
	}
	return witnesses{
		claims: []func([]attribution.DeviceRef) []attribution.Claim{func([]attribution.DeviceRef) []attribution.Claim {
			var all []attribution.Claim
			for _, t := range tenants.List() {
				one := attribution.Claim{
					Thing: attribution.Thing{Device: t.Device, Partition: t.Partition}, Workload: workload(t), Share: 1, How: how,
				}
				if t.Kind != "" {
					one.Chain = t.Kind + "/" + t.Name
				}
				all = append(all, one)
			}
			return all
		}},
		place: func(pid int64) (attribution.Workload, string, bool) {
			t, ok := tenants.Whose(pid)
			return workload(t), how, ok
		},
	}
}

// workloadOf returns the workload of a process by its control group and user alone: a pod that no kubelet
// knows, such as one of a cluster in a container of this host, is its container. What the prolog wrote of a
// job adds its user and account. The process' environment is not read: its user can change it.
func workloadOf(p process.Process, known jobOf) (w attribution.Workload, how string) {
	const short = 12 // digits of a container's id, as its runtime's tools print it
	switch {
	case p.Pod == "" && (p.Job != "" || p.SLUID != ""):
		if job, ok := known(p.Job, p.SLUID); ok {
			return jobWorkload(job), "cgroup of the job"
		}
		return jobWorkload(slurm.Job{ID: cmp.Or(p.Job, p.SLUID)}), "cgroup of the job" // a SLUID is no other job's
	case p.Container != "":
		return attribution.Workload{Type: telemetry.WorkloadTypeUnit, Unit: cmp.Or(p.Runtime, "container") + "/" + p.Container[:short]}, "cgroup of the container"
	case p.Pod != "":
		return attribution.Workload{}, "" // its pause, or the runtime's own
	case p.Unit != "" && p.Login != "": // other users may have a unit of that name
		return attribution.Workload{Type: telemetry.WorkloadTypeUnit, Unit: "user/" + p.Login + "/" + p.Unit}, "cgroup of the user's unit"
	case p.Unit != "":
		return attribution.Workload{Type: telemetry.WorkloadTypeUnit, Unit: p.Unit}, "cgroup of the unit"
	case p.Login != "":
		return attribution.Workload{Type: telemetry.WorkloadTypeProcess, Unit: "user/" + p.Login}, "user of the process"
	default:
		return attribution.Workload{Type: telemetry.WorkloadTypeProcess, Unit: p.Command}, "command of the process"
	}
}
