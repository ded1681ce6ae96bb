package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
	"github.com/gpumeter/gpumeter/exporter/attribution/process"
	"github.com/gpumeter/gpumeter/exporter/attribution/slurm"
	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/doctor"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Where a process belongs says whose work it does.
func TestPlaced(t *testing.T) {
	cid := strings.Repeat("a", 64)
	pods := &fakeCluster{pods: []kubernetes.Pod{{
		Namespace: "hpc", Name: "slurmd-0", UID: raw0, Workload: kubernetes.Owner{Kind: "NodeSet", Name: "slurmd"},
		Containers: []kubernetes.Container{{Name: "slurmd", ID: cid}},
	}}}
	known := func(p process.Process) (attribution.Workload, string, bool) { return podOf(pods, p) }
	pod := attribution.Workload{Type: telemetry.WorkloadTypeKubernetes, Namespace: "hpc", Pod: "slurmd-0", Container: "slurmd", Kind: "NodeSet", Name: "slurmd"}
	both := attribution.Workload{Type: telemetry.WorkloadTypeSlurm, Job: "42"}.Inside(pod)
	mapped := func(id, _ string) (slurm.Job, bool) { return slurm.Job{ID: "42"}, id == "42" }
	unit := func(name string) attribution.Workload {
		return attribution.Workload{Type: telemetry.WorkloadTypeUnit, Unit: name}
	}
	for name, c := range map[string]struct {
		p    process.Process
		want attribution.Workload
		ok   bool
	}{
		"a pod":                     {process.Process{Place: process.Place{Pod: raw0, Container: cid}}, pod, true},
		"a job":                     {process.Process{Place: process.Place{Job: "42"}}, attribution.Workload{Type: telemetry.WorkloadTypeSlurm, Job: "42"}, true},
		"a job in a pod":            {process.Process{Place: process.Place{Pod: raw0, Container: cid, Job: "42"}}, both, true},
		"a pod's word on a job":     {process.Process{Place: process.Place{Pod: raw0, Container: cid, Job: "43"}}, pod, true},
		"a job in a pod not known":  {process.Process{Place: process.Place{Pod: raw1, Job: "42"}}, attribution.Workload{}, false},
		"a pod not known":           {process.Process{Place: process.Place{Pod: raw1, Container: strings.Repeat("b", 64)}}, attribution.Workload{}, false},
		"a container of no pod":     {process.Process{Place: process.Place{Container: cid, Runtime: "docker"}}, unit("docker/aaaaaaaaaaaa"), true},
		"one of an unknown runtime": {process.Process{Place: process.Place{Container: cid}}, unit("container/aaaaaaaaaaaa"), true},
		"a unit":                    {process.Process{Place: process.Place{Unit: "ollama.service"}}, unit("ollama.service"), true},
		"a command":                 {process.Process{Command: "python3"}, attribution.Workload{Type: telemetry.WorkloadTypeProcess, Unit: "python3"}, true},
	} {
		if got, _, ok := placed(c.p, mapped, nil); c.p.Pod == "" && (got != c.want || !ok) {
			t.Errorf("%s, and no kubelet\ngot  %+v, %v\nwant %+v", name, got, ok, c.want)
		}
		got, how, ok := placed(c.p, mapped, known)
		if got != c.want || ok != c.ok || how == "" {
			t.Errorf("%s\ngot  %+v, %v, %q\nwant %+v, %v", name, got, ok, how, c.want, c.ok)
		}
	}
}

// Jobs hold what their prolog says, by the number of the GPU's device file and of the GPU instance.
func TestJobClaims(t *testing.T) {
	entry := func(gpu, instance, job string) slurm.Entry {
		return slurm.Entry{GPU: gpu, GPUInstance: instance, Job: slurm.Job{ID: job, User: "ada", Account: "phys", Partition: "gpu", Name: "train"}}
	}
	devices := machine()
	got, _ := jobClaims([]slurm.Entry{entry("3", "", "1"), entry("3", "", "2"), entry("1", "7", "3"), entry("1", "2", "4"), entry("5", "", "5"), entry("2", "", "6")}, attribution.References(devices), nil)
	for i := range got {
		got[i].Pod = got[i].Job // to be told
	}
	want := []string{"1/ " + uuid0 + "=0.5", "2/ " + uuid0 + "=0.5", "3/ MIG-" + raw1 + "=1", "4/ MIG-" + raw3 + "=1", "4/ MIG-" + raw4 + "=1"}
	if text := told(got); text != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", text, strings.Join(want, "\n"))
	}
	got[0].Pod = ""
	first := attribution.Claim{
		Thing: attribution.Thing{Device: uuid0}, Share: .5, How: "job mapping", Detail: attribution.Detail{JobName: "train"},
		Workload: attribution.Workload{Type: telemetry.WorkloadTypeSlurm, Job: "1", User: "ada", Account: "phys", Partition: "gpu"},
	}
	if got[0] != first {
		t.Errorf("got  %+v\nwant %+v", got[0], first)
	}
}

// Slurm's numbers are its own: of a device that is cut into MIG instances a number alone says nothing,
// and what each means can be told.
func TestSlurmNumbers(t *testing.T) {
	devices := machine()
	for i := range devices {
		devices[i].Read.Presence.Up.Set(1)
	}
	for name, c := range map[string]struct {
		told   []string
		entry  slurm.Entry
		want   string
		absent int
	}{
		"by device file":           {nil, slurm.Entry{GPU: "3"}, uuid0, 0},
		"not by the driver's":      {nil, slurm.Entry{GPU: "0"}, "", 1},
		"one that is cut":          {nil, slurm.Entry{GPU: "1"}, "", 1},
		"told by UUID":             {[]string{"0=" + uuid0}, slurm.Entry{GPU: "0"}, uuid0, 0},
		"told by PCI address":      {[]string{"0=00000000:65:00.0"}, slurm.Entry{GPU: "0"}, uuid0, 0},
		"told, a MIG instance":     {[]string{"9=MIG-" + raw1}, slurm.Entry{GPU: "9"}, "MIG-" + raw1, 0},
		"told, and not there":      {[]string{"3=GPU-other"}, slurm.Entry{GPU: "3"}, "", 1},
		"told, whole, though cut":  {[]string{"3=" + uuid1}, slurm.Entry{GPU: "3"}, uuid1, 0},
		"told, and an instance":    {[]string{"3=" + uuid1}, slurm.Entry{GPU: "3", GPUInstance: "7"}, "MIG-" + raw1, 0},
		"another number than told": {[]string{"0=" + uuid1}, slurm.Entry{GPU: "3"}, uuid0, 0},
	} {
		c.entry.Job.ID = "1"
		claims, absent := jobClaims([]slurm.Entry{c.entry}, attribution.References(devices), newNumbering(c.told))
		got := ""
		for _, claim := range claims {
			got += cmp.Or(claim.Thing.Partition, claim.Thing.Device)
		}
		if got != c.want || len(absent) != c.absent {
			t.Errorf("%s: got %s, absent %v; want %s", name, got, absent, c.want)
		}
	}
}

// A whole GPU that is given to a pod by the kubelet and to a job by Slurm has one owner with both labels.
func TestJobInPodOwnsOnce(t *testing.T) {
	pods := &fakeCluster{held: []kubernetes.Holding{given("slurmd-0/slurmd", "nvidia.com/gpu", uuid0)}}
	a := attribution.New(attribution.Config{Claims: []func([]attribution.DeviceRef) []attribution.Claim{
		func(d []attribution.DeviceRef) []attribution.Claim {
			all, _ := jobClaims([]slurm.Entry{{GPU: "3", Job: slurm.Job{ID: "42", User: "ada"}}}, d, nil)
			return all
		},
		func(d []attribution.DeviceRef) []attribution.Claim { return podClaims(pods, d) },
	}})
	s := &snapshot.Snapshot{Devices: machine()[:1]}
	a.Stage(s)
	const want = `slurm_job_id="42",slurm_user="ada"`
	if got := s.Owners[0].Labels.Text(); len(s.Owners) != 1 || !strings.Contains(got, want) || !strings.Contains(got, `k8s_pod_name="slurmd-0"`) {
		t.Errorf("owner %s", got)
	}
	if n, _ := s.Owners[0].Read.Ownership.Info[telemetry.SharingExclusive].Get(); n != 1 {
		t.Error("it is shared")
	}
	if got := s.Devices[0].Whose(); got != "ml/slurmd-0" {
		t.Errorf("whose for people: %s", got)
	}
}

// However late the API server may first be asked, labels wait for what it tells.
func TestLabelsWaitForTheFirstQuestion(t *testing.T) {
	for _, jitter := range []time.Duration{0, time.Minute, 20 * time.Minute} {
		made, pods := "", attribution.Claim{Thing: attribution.Thing{Device: uuid0}, Share: 1}
		who := witnesses{claims: []func([]attribution.DeviceRef) []attribution.Claim{func([]attribution.DeviceRef) []attribution.Claim {
			pods.Workload = attribution.Workload{Type: telemetry.WorkloadTypeKubernetes, Namespace: "ml", Pod: "train-0", Kind: made, Name: made}
			pods.Awaited = made == ""
			return []attribution.Claim{pods}
		}}}
		c := config.Node{WorkloadHold: 30 * time.Second}
		c.Kubernetes.APIJitter = jitter
		a := newAttributor(c, who, slog.New(slog.DiscardHandler))
		start := time.Unix(1_800_000_000, 0)
		var last *snapshot.Snapshot
		for after := time.Duration(0); after <= jitter+time.Minute; after += 15 * time.Second {
			if after > jitter+30*time.Second {
				made = "Job"
			}
			last = &snapshot.Snapshot{Taken: start.Add(after), Devices: machine()[:1]}
			a.Stage(last)
		}
		named := slices.ContainsFunc(last.Workloads, func(w telemetry.Part[telemetry.Workload]) bool { return w.Labels.Get("k8s_workload_name") == "Job" })
		if !named {
			t.Errorf("first asked within %v: the labels did not wait", jitter)
		}
	}
}

// Each reason why a process has no owner is reported by its own name.
func TestUnplaced(t *testing.T) {
	for want, err := range map[string]error{
		doctor.NotSeen: process.ErrGone, doctor.NotRead: process.ErrDenied, doctor.NoFiles: process.ErrFiles,
		doctor.Hanging: process.ErrHanging, doctor.NoSense: process.ErrMalformed,
	} {
		if got := unplaced(fmt.Errorf("process 7: %w", err)); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
