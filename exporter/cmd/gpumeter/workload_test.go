package main

import (
	"slices"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/attribution/process"
	"github.com/gpumeter/gpumeter/exporter/attribution/slurm"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

const containerID = "3f1c5b6d7e8f90123456789abcdef0123456789abcdef0123456789abcdef012"

// Whose work a process does, in the words of its labels.
func TestWorkloadOf(t *testing.T) {
	const sluid = "s5K1KKYAYG5D00"
	ada := slurm.Job{ID: "30214", SLUID: sluid, User: "ada", Account: "physics", Partition: "gpu-long"}
	mapped := func(id, s string) (slurm.Job, bool) { return ada, id == ada.ID || id == "" && s == sluid }
	nothing := func(string, string) (slurm.Job, bool) { return slurm.Job{}, false }
	job := func(id string) attribution.Workload {
		return attribution.Workload{Type: telemetry.WorkloadTypeSlurm, Job: id}
	}
	adas := attribution.Workload{Type: telemetry.WorkloadTypeSlurm, Job: "30214", User: "ada", Account: "physics", Partition: "gpu-long"}
	unit := func(u string) attribution.Workload {
		return attribution.Workload{Type: telemetry.WorkloadTypeUnit, Unit: u}
	}
	bare := func(u string) attribution.Workload {
		return attribution.Workload{Type: telemetry.WorkloadTypeProcess, Unit: u}
	}
	for name, c := range map[string]struct {
		p     process.Process
		known func(string, string) (slurm.Job, bool)
		want  attribution.Workload
	}{
		"a job":                               {process.Process{Place: process.Place{Job: "30214"}}, nothing, job("30214")},
		"a job the prolog told of":            {process.Process{Place: process.Place{Job: "30214"}}, mapped, adas},
		"a job it did not tell of":            {process.Process{Place: process.Place{Job: "7"}}, mapped, job("7")},
		"a SLUID the prolog told of":          {process.Process{Place: process.Place{SLUID: sluid}}, mapped, adas},
		"a job that a pod names":              {process.Process{Place: process.Place{Pod: "x", Container: containerID, Runtime: "cri-o", Job: "30214"}}, mapped, unit("cri-o/3f1c5b6d7e8f")},
		"a SLUID of which nobody tells":       {process.Process{Place: process.Place{SLUID: sluid}}, nothing, job(sluid)},
		"a pod nobody knows":                  {process.Process{Place: process.Place{Pod: "x", Container: containerID, Runtime: "cri-o"}}, nothing, unit("cri-o/3f1c5b6d7e8f")},
		"none of its containers":              {process.Process{Place: process.Place{Pod: "x"}}, nothing, attribution.Workload{}},
		"a container":                         {process.Process{Place: process.Place{Container: containerID}}, nothing, unit("container/3f1c5b6d7e8f")},
		"a container of a known runtime":      {process.Process{Place: process.Place{Container: containerID, Runtime: "podman", User: "1000"}}, nothing, unit("podman/3f1c5b6d7e8f")},
		"a unit":                              {process.Process{Place: process.Place{Unit: "ollama.service"}}, nothing, unit("ollama.service")},
		"a unit of a user":                    {process.Process{Place: process.Place{Unit: "lab.service", User: "1000"}, Login: "ada"}, nothing, unit("user/ada/lab.service")},
		"a user":                              {process.Process{Place: process.Place{User: "1000"}, Command: "python3", Login: "ada"}, nothing, bare("user/ada")},
		"nobody's, so it is called by itself": {process.Process{Command: "nvidia-persiste"}, nothing, bare("nvidia-persiste")},
	} {
		if got, _ := workloadOf(c.p, c.known); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// What a job mapping names and no driver lists is told, but not while no driver lists anything, nor of
// the parts of a device that does not answer.
func TestJobClaimsAbsent(t *testing.T) {
	device := func(index int, uuid string, up float64) snapshot.Device {
		d := snapshot.Device{Identity: &telemetry.Identity{Vendor: "nvidia", Index: index, UUID: uuid}}
		d.Read.Presence.Up.Set(up)
		return d
	}
	entry := func(gpu, instance string) slurm.Entry {
		return slurm.Entry{GPU: gpu, GPUInstance: instance, Job: slurm.Job{ID: "7"}}
	}
	for name, c := range map[string]struct {
		devices []snapshot.Device
		entry   slurm.Entry
		claims  int
		absent  []string
	}{
		"there":                       {[]snapshot.Device{device(0, "GPU-0", 1)}, entry("0", ""), 1, nil},
		"not there":                   {[]snapshot.Device{device(0, "GPU-0", 1)}, entry("1", ""), 0, []string{"1"}},
		"no such instance":            {[]snapshot.Device{device(0, "GPU-0", 1)}, entry("0", "7"), 0, []string{"0.7"}},
		"the device does not answer":  {[]snapshot.Device{device(0, "GPU-0", 0)}, entry("0", "7"), 0, nil},
		"no driver yet":               {nil, entry("0", ""), 0, nil},
		"only what should be there":   {[]snapshot.Device{device(-1, "", 0)}, entry("0", ""), 0, nil},
		"another number for the zero": {[]snapshot.Device{device(0, "GPU-0", 1)}, entry("00", ""), 0, []string{"00"}},
	} {
		claims, absent := jobClaims([]slurm.Entry{c.entry}, attribution.References(c.devices), nil)
		if len(claims) != c.claims || !slices.Equal(absent, c.absent) {
			t.Errorf("%s: %d claims, absent %v; want %d and %v", name, len(claims), absent, c.claims, c.absent)
		}
	}
}
