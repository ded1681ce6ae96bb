package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
	"github.com/gpumeter/gpumeter/exporter/attribution/process"
	"github.com/gpumeter/gpumeter/exporter/attribution/slurm"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// The pods of the node, the victim's container and the tenant's own.
var (
	victimID = strings.Repeat("b", 64)
	slurmdID = strings.Repeat("c", 64)
	eveID    = strings.Repeat("e", 64)
)

// forger is a tenant that may make control groups below its own, and call its processes what it likes.
type forger struct {
	name string
	root string            // control group
	uid  string            // user of its processes
	own  map[string]string // labels of its own series
}

var forgers = []forger{
	{"pod", "/kubepods/pod" + raw2 + "/" + eveID, "0", map[string]string{"k8s_pod_name": "eve"}},
	{"docker container", "/docker/" + eveID, "0", map[string]string{"process_unit": "docker/eeeeeeeeeeee"}},
	{"unit of the system", "/system.slice/eve.service", "1002", map[string]string{"process_unit": "eve.service"}},
	{"session", "/user.slice/user-1002.slice/session-4.scope", "1002", map[string]string{"process_unit": "user/1002"}},
	{"user's services", "/user.slice/user-1002.slice/user@1002.service/app.slice", "1002", map[string]string{"process_unit": "user/1002"}},
	{"job", "/system.slice/slurmstepd.scope/job_6/step_0/user/task_0", "1002", map[string]string{"slurm_job_id": "6"}},
	{"system container", "/lxc.payload.eve", "0", map[string]string{"process_unit": "lxc/eve"}},
}

// is reports whether labels are the tenant's: a user's units are all the user's.
func (f *forger) is(l *metric.Labels) bool {
	for name, want := range f.own {
		got := l.Get(name)
		if got != want && !(strings.HasPrefix(want, "user/") && strings.HasPrefix(got, want+"/")) {
			return false
		}
	}
	return true
}

// forged is a node with honest tenants and one forger on each of three GPUs: shared by pods, allocated to
// no one, and given to Slurm's jobs.
type forged struct {
	testing.TB
	proc   string
	honest map[*forger]map[string]string // bills while the forger makes no groups
}

func newForged(t testing.TB) forged { return forged{t, t.TempDir(), map[*forger]map[string]string{}} }

func (n forged) process(pid int, command, cgroup, uid, program string) {
	dir := filepath.Join(n.proc, strconv.Itoa(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		n.Fatal(err)
	}
	for name, text := range map[string]string{
		"stat":   fmt.Sprintf("%d (%s) S%s 100 0 0\n", pid, command, strings.Repeat(" 0", 18)),
		"cgroup": "0::" + cgroup + "\n",
		"status": "PPid:\t1\nUid:\t" + uid + "\t" + uid + "\t" + uid + "\t" + uid + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			n.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "exe")); err != nil && !os.IsNotExist(err) {
		n.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(dir, "exe")); err != nil {
		n.Fatal(err)
	}
}

// bills returns the bill of every series that is not the forger's, the unattributed and the unallocated
// rest among them.
func (n forged) bills(f *forger, below, command string) map[string]string {
	const python = "/usr/bin/python3"
	n.process(1, "init", "/init.scope", "0", "/sbin/init")
	on := [3][]int{{11, 12}, {21, 22, 23, 24}, {31, 32}}
	n.process(11, "python3", "/kubepods/pod"+raw0+"/"+victimID, "0", python)
	n.process(21, "python3", "/docker/"+victimID, "0", python)
	n.process(22, "python3", "/user.slice/user-1001.slice/session-2.scope", "1001", python)
	n.process(23, "ollama", "/system.slice/ollama.service", "1001", "/usr/bin/ollama")
	n.process(31, "python3", "/system.slice/slurmstepd.scope/job_777/step_0/user/task_0", "1001", python)
	for _, pid := range []int{12, 24, 32} {
		n.process(pid, command, f.root+below, f.uid, "/home/eve/nvidia-cuda-mps-server")
	}
	pod := func(name, uid, id string) kubernetes.Pod {
		return kubernetes.Pod{Namespace: "ml", Name: name, UID: uid, Containers: []kubernetes.Container{{Name: "c", ID: id}}}
	}
	pods := &fakeCluster{
		pods: []kubernetes.Pod{pod("victim", raw0, victimID), pod("slurmd", raw1, slurmdID), pod("eve", raw2, eveID)},
		held: []kubernetes.Holding{given("victim/c", "nvidia.com/gpu", uuid0+"::0"), given("eve/c", "nvidia.com/gpu", uuid0+"::1")},
	}
	for i := range pods.held {
		pods.held[i].Replicas = 2
	}
	entries := []slurm.Entry{{GPU: "2", Job: slurm.Job{ID: "777", User: "ada", SLUID: "s5K1KKYAYG5D99"}}, {GPU: "2", Job: slurm.Job{ID: "6", User: "eve"}}}
	job := func(id, sluid string) (slurm.Job, bool) {
		for _, e := range entries {
			if id != "" && e.Job.ID == id || id == "" && sluid != "" && e.Job.SLUID == sluid {
				return e.Job, true
			}
		}
		return slurm.Job{}, false
	}
	processes := &process.Locator{Proc: n.proc}
	a := attribution.New(attribution.Config{
		Hold: -1,
		Claims: []func([]attribution.DeviceRef) []attribution.Claim{
			func(d []attribution.DeviceRef) []attribution.Claim { return podClaims(pods, d) },
			func(d []attribution.DeviceRef) []attribution.Claim { all, _ := jobClaims(entries, d, nil); return all },
		},
		Place: func(pid int64) (attribution.Workload, string, bool) {
			return located(processes, pid, job, func(p process.Process) (attribution.Workload, string, bool) { return podOf(pods, p) })
		},
	})
	var last *snapshot.Snapshot
	for at := range 3 {
		last = &snapshot.Snapshot{Taken: time.Unix(1_800_000_000+10*int64(at), 0)}
		for i, uuid := range []string{uuid0, uuid1, "GPU-" + raw2} {
			last.Devices = append(last.Devices, working(i, uuid, on[i], float64(at)))
		}
		a.Stage(last)
	}
	out := map[string]string{}
	put := func(l *metric.Labels, values ...metric.Value) {
		if f.is(l) || strings.HasPrefix(f.own["process_unit"], "user/") && l.Get("gpu_workload_type") == "unit" && l.Get("process_unit") == "" {
			return
		}
		out[l.Text()] = fmt.Sprint(values)
	}
	for i := range last.Workloads {
		w := &last.Workloads[i]
		put(w.Labels, w.Read.Accounting.BusyTime, w.Read.Accounting.Energy, w.Read.Accounting.AllocatedTime, w.Read.Holding.MemoryUsage)
	}
	return out
}

// working is a GPU with processes that all do the same.
func working(index int, uuid string, pids []int, at float64) snapshot.Device {
	id := &telemetry.Identity{Vendor: "nvidia", UUID: uuid, Index: index, Minor: strconv.Itoa(index), Model: "H100"}
	d := snapshot.Device{Identity: id, Labels: id.Labels(), Owned: id.Labels()}
	d.Read.Presence.Up.Set(1)
	n := float64(len(pids))
	load := 1.
	if at == 0 { // the power it draws at rest becomes known
		load = 0
	}
	d.Read.Power.Draw.Set(100 + 300*load)
	d.Read.Power.Energy.Set(4000 * at)
	d.Read.Utilization.Utilization.Set(load)
	d.Read.Utilization.BusyTime.Set(n * at)
	d.Read.Memory.Usage.Set(n*10 + 5)
	for _, pid := range pids {
		p := telemetry.Part[telemetry.Process]{Labels: telemetry.ProcessAttributes{ProcessPid: int64(pid)}.Labels()}
		p.Read.Processes.MemoryUsage.Set(10)
		p.Read.Processes.BusyTime.Set(at)
		d.Read.Processes = append(d.Read.Processes, p)
	}
	return d
}

// borrowed are names that a tenant would use to be another.
var borrowed = []string{
	"docker-" + victimID + ".scope", "libpod-conmon-" + victimID + ".scope", "crio-conmon-" + victimID + ".scope", "cri-containerd-" + victimID + ".scope",
	victimID, "docker", "kubepods.slice", "pod" + raw0, "pod" + raw1, slurmdID, "slurm", "slurmstepd.scope", "uid_1001", "job_777", "s5K1KKYAYG5D99",
	"step_0", "user", "task_0", "system.slice", "user.slice", "user-1001.slice", "user-0.slice", "session-2.scope", "ollama.service", "nvidia-mps.service", "containerd.service",
}

func checkForger(t *testing.T, n forged, f *forger, below, command string) {
	t.Helper()
	want, known := n.honest[f]
	if !known {
		want = n.bills(f, "", "python3")
		n.honest[f] = want
	}
	got := n.bills(f, below, command)
	if !maps.Equal(got, want) {
		t.Errorf("%s with a process %q below %q changes the bills of others", f.name, command, below)
		for labels, bill := range want {
			if got[labels] != bill {
				t.Errorf("%s\nhad %s\nhas %s", labels, bill, got[labels])
			}
		}
		for labels, bill := range got {
			if _, known := want[labels]; !known {
				t.Errorf("%s\nis new: %s", labels, bill)
			}
		}
	}
}

// Whatever a tenant calls its control groups and processes, no other bill and no unattributed rest changes.
func TestBills_NamesOfATenantChangeNoOther(t *testing.T) {
	random, n := rand.New(rand.NewPCG(1, 2)), newForged(t)
	for i := range forgers {
		f := &forgers[i]
		checkForger(t, n, f, "", "nvidia-cuda-mps")
		checkForger(t, n, f, "/slurm/uid_1001/job_777/step_0", "python3")
		for range 20 {
			below := ""
			for range 1 + random.IntN(4) {
				below += "/" + borrowed[random.IntN(len(borrowed))]
			}
			checkForger(t, n, f, below, []string{"python3", "nvidia-cuda-mps", "slurmstepd"}[random.IntN(3)])
		}
	}
}

func FuzzBills(f *testing.F) {
	f.Add(0, "/slurm/uid_1001/job_777", "python3")
	f.Add(3, "/docker-"+victimID+".scope", "nvidia-cuda-mps")
	f.Add(5, "/slurm", "x) R 1 1 (y")
	n := newForged(f)
	f.Fuzz(func(t *testing.T, who int, below, command string) {
		if who < 0 || strings.ContainsAny(below, "\n\x00") || strings.ContainsAny(command, "\n\x00") {
			t.Skip()
		}
		checkForger(t, n, &forgers[who%len(forgers)], "/"+below, command)
	})
}
