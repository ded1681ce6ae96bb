package main

import (
	"slices"
	"strconv"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/attribution/slurm"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// jobOf tells what a prolog wrote of a job, by its number or by Slurm's own id of it.
type jobOf func(id, sluid string) (slurm.Job, bool)

// jobClaims are what the prolog says each job was given, and what of it no driver lists. Jobs that share
// a GPU have equal shares of it.
func jobClaims(entries []slurm.Entry, devices []snapshot.Device) (all []attribution.Claim, absent []string) {
	sharers := map[string]float64{}
	for _, e := range entries {
		sharers[e.Thing()]++
	}
	listed := slices.ContainsFunc(devices, func(d snapshot.Device) bool { return d.Identity.Vendor == "nvidia" && d.Identity.UUID != "" })
	for _, e := range entries {
		there := !listed // while no driver lists any, nobody knows
		for i := range devices {
			d := &devices[i]
			if d.Identity.Vendor != "nvidia" || strconv.Itoa(d.Identity.Index) != e.GPU {
				continue
			}
			held := things(d, e.GPUInstance)
			up, _ := d.Read.Presence.Up.Get()
			there = there || len(held) > 0 || up != 1 // the parts of one that does not answer are not known
			for _, at := range held {
				all = append(all, attribution.Claim{
					Thing: at, Share: 1 / sharers[e.Thing()], How: "job mapping",
					Workload: jobWorkload(e.Job), Detail: attribution.Detail{JobName: e.Job.Name, QOS: e.Job.QOS},
				})
			}
		}
		if !there {
			absent = append(absent, e.Thing())
		}
	}
	return all, absent
}

func jobWorkload(job slurm.Job) attribution.Workload {
	return attribution.Workload{
		Type: telemetry.WorkloadTypeSlurm, Job: job.ID, User: job.User, Account: job.Account, Partition: job.Partition,
	}
}
