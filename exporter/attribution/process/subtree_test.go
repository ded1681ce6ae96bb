package process

import (
	"math/rand/v2"
	"strings"
	"testing"
)

const victim = "bb11bb22cc33dd44ee55ff66aa11bb22cc33dd44ee55ff66aa11bb22cc33dd44"

// tenantRoots are control groups that root or a runtime makes for one tenant, below which the tenant may
// have the right to make more.
var tenantRoots = []string{
	"/kubepods.slice/" + s + "/cri-containerd-" + cid + ".scope",
	"/kubepods/burstable/pod" + uid + "/" + cid,
	"/kubepods/burstable/pod" + uid + "/crio-" + cid,
	"/kubepods.slice/" + s + "/crio-" + cid + ".scope/container",
	"/system.slice/containerd.service/" + s + ":cri-containerd:" + cid,
	"/../../" + s + "/cri-containerd-" + cid + ".scope",
	"/system.slice/docker-" + cid + ".scope",
	"/docker/" + cid,
	"/machine.slice/libpod-" + cid + ".scope/container",
	"/libpod_parent/libpod-" + cid,
	"/default/" + cid,
	"/system.slice/jupyter-ada.service",
	"/system.slice/run-r0a1b.scope",
	"/machine.slice/machine-eve.scope",
	"/machine.slice/systemd-nspawn@eve.service",
	"/lxc.payload.eve",
	"/lxc/eve",
	"/user.slice/user-1002.slice",
	"/user.slice/user-1002.slice/session-4.scope",
	"/user.slice/user-1002.slice/user@1002.service",
	"/user.slice/user-1002.slice/user@1002.service/app.slice",
	"/../user@1002.service",
	"/system.slice/slurmstepd.scope/job_30214/step_0/user/task_0",
	"/system.slice/slurmstepd.scope/job_30214/step_0/user",
	"/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0",
	"/slurm/uid_1001/job_30214/step_0/task_3",
}

// borrowed are names that a tenant would use to be another.
var borrowed = []string{
	"docker-" + victim + ".scope", "libpod-conmon-" + victim + ".scope", "crio-conmon-" + victim + ".scope", "conmon-" + victim,
	"libpod-" + victim + ".scope", "cri-containerd-" + victim + ".scope", victim, "docker", "libpod_parent", "container",
	"kubepods.slice", "kubepods-podffffffff_9b1e_4a1c_8d55_0c2c0a6f3b11.slice", "podffffffff-9b1e-4a1c-8d55-0c2c0a6f3b11",
	"kubepods-podffffffff_9b1e_4a1c_8d55_0c2c0a6f3b11.slice:cri-containerd:" + victim,
	"slurm", "slurmstepd.scope", "node1_slurmstepd.scope", "slurm_node1", "uid_0", "uid_1001", "job_777", "step_0", "step_batch", "user", "task_0", "s5K1KKYAYG5D99",
	"system.slice", "user.slice", "machine.slice", "user-0.slice", "user-1001.slice", "user@0.service", "user@1001.service", "session-1.scope",
	"ollama.service", "containerd.service", "docker.service", "nvidia-mps.service", "init.scope", "lxc.payload.bob", "lxc", "bob", "..", ".", "(deleted)",
}

// sameOwner reports whether two places lead to the same bill. A user's units and containers are all the
// user's; a job named below a pod's container only chooses among the jobs of that pod.
func sameOwner(a, b Place) bool {
	if a.User != "" && b.User != "" && a.Job+a.SLUID == "" {
		a.Unit, b.Unit = "", ""
	}
	if a.Pod != "" {
		a.Job, a.SLUID, a.Step, a.User = "", "", "", ""
		b.Job, b.SLUID, b.Step, b.User = "", "", "", ""
	}
	return a == b
}

func checkSubtree(t *testing.T, root, below string) {
	t.Helper()
	for _, line := range []string{"0::", "9:devices:", "1:name=systemd:"} {
		want, got := Parse(line+root, nil), Parse(line+root+below, nil)
		if !sameOwner(want, got) {
			t.Errorf("%s%s\nbelow it %s\ngot  %+v\nwant %+v", line, root, below, got, want)
		}
	}
}

// Whatever a tenant calls the control groups below its own, its processes stay its own.
func TestParse_NamesBelowATenantChangeNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, root := range tenantRoots {
		if Parse("0::"+root, nil) == (Place{}) && !strings.HasPrefix(root, "/system.slice/run-") {
			t.Errorf("%s has no owner", root)
		}
		for range 5000 {
			below := ""
			for range 1 + random.IntN(5) {
				below += "/" + borrowed[random.IntN(len(borrowed))]
			}
			checkSubtree(t, root, below)
			if t.Failed() {
				break
			}
		}
	}
}

func FuzzSubtree(f *testing.F) {
	for i := range tenantRoots {
		f.Add(i, "/"+borrowed[i%len(borrowed)]+"/"+borrowed[(7*i)%len(borrowed)])
	}
	f.Add(0, "/slurm/uid_7/job_777/step_0")
	f.Fuzz(func(t *testing.T, root int, below string) {
		if root < 0 || strings.ContainsRune(below, '\n') {
			t.Skip()
		}
		checkSubtree(t, tenantRoots[root%len(tenantRoots)], "/"+below)
	})
}
