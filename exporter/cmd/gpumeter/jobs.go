package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/attribution/slurm"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// jobOf tells what a prolog wrote of a job, by its number or by Slurm's own id of it.
type jobOf func(id, sluid string) (slurm.Job, bool)

// numbering is which devices and MIG instances Slurm means by its numbers, where it is told: by UUID or PCI
// address.
type numbering map[string]string

func newNumbering(told []string) numbering {
	out := numbering{}
	for _, text := range told {
		number, device, _ := strings.Cut(text, "=") // checked when it was parsed
		out[number] = device
	}
	return out
}

// jobClaims are what the prolog says each job was given, and what of it no driver lists. Jobs that share
// a GPU have equal shares of it.
func jobClaims(entries []slurm.Entry, devices []attribution.DeviceRef, numbers numbering) (all []attribution.Claim, absent []string) {
	sharers := map[string]float64{}
	for _, e := range entries {
		sharers[e.Thing()]++
	}
	listed := slices.ContainsFunc(devices, func(d attribution.DeviceRef) bool { return d.Vendor == "nvidia" && d.UUID != "" })
	for _, e := range entries {
		there := !listed // while no driver lists any, nobody knows
		for i := range devices {
			d := &devices[i]
			held, meant := numbers.things(d, e)
			there = there || len(held) > 0 || meant && !d.Up // the parts of one that does not answer are not known
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

// things are what of a device an entry names, and whether it means that device. Slurm numbers device
// files, and the driver may count otherwise. Where Slurm gives away MIG instances it numbers them, each
// like a whole device: such a number says nothing of which instance it is, unless that is told.
func (n numbering) things(d *attribution.DeviceRef, e slurm.Entry) (held []attribution.Thing, meant bool) {
	if d.Vendor != "nvidia" {
		return nil, false
	}
	if name, told := n[e.GPU]; told {
		for i := range d.Partitions {
			if uuid := d.Partitions[i].Labels.Get("gpu_partition_uuid"); uuid != "" && strings.EqualFold(uuid, name) {
				return []attribution.Thing{{Device: d.UUID, Partition: uuid}}, true
			}
		}
		if !strings.EqualFold(d.UUID, name) && d.PCI != telemetry.NormalizePCI(name) {
			return nil, false
		}
		return things(d, e.GPUInstance), true
	}
	if e.GPU != cmp.Or(d.Minor, strconv.Itoa(d.Index)) {
		return nil, false
	}
	if e.GPUInstance == "" && len(d.Partitions) > 0 {
		return nil, true
	}
	return things(d, e.GPUInstance), true
}

func jobWorkload(job slurm.Job) attribution.Workload {
	return attribution.Workload{
		Type: telemetry.WorkloadTypeSlurm, Job: job.ID, User: job.User, Account: job.Account, Partition: job.Partition,
	}
}
