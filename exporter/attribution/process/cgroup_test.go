package process

import (
	"strings"
	"testing"
)

const (
	uid  = "7d2f0a4c-9b1e-4a1c-8d55-0c2c0a6f3b11"
	cid  = "3f1c5b6d7e8f90123456789abcdef0123456789abcdef0123456789abcdef012"
	node = "aa11bb22cc33dd44ee55ff66aa11bb22cc33dd44ee55ff66aa11bb22cc33dd44"
	s    = "kubepods-burstable-pod7d2f0a4c_9b1e_4a1c_8d55_0c2c0a6f3b11.slice"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Place{
		// Kubernetes, version 2, systemd
		"0::/kubepods.slice/kubepods-burstable.slice/" + s + "/cri-containerd-" + cid + ".scope":             {Pod: uid, Container: cid, Runtime: "containerd"},
		"0::/kubepods.slice/kubepods-besteffort.slice/" + s + "/crio-" + cid + ".scope":                      {Pod: uid, Container: cid, Runtime: "cri-o"},
		"0::/kubepods.slice/" + s + "/crio-" + cid + ".scope/container":                                      {Pod: uid, Container: cid, Runtime: "cri-o"},
		"0::/kubepods.slice/" + s + "/crio-conmon-" + cid + ".scope":                                         {Pod: uid, Runtime: "cri-o", Helper: true},
		"0::/kubepods.slice/" + s + "/docker-" + cid + ".scope":                                              {Pod: uid, Container: cid, Runtime: "docker"},
		"0::/kubepods.slice/kubepods-pod0a1b2c3d4e5f60718293a4b5c6d7e8f9.slice/cri-containerd-" + cid + ".s": {Pod: "0a1b2c3d4e5f60718293a4b5c6d7e8f9", Container: cid, Runtime: "containerd"},
		// cgroupfs
		"0::/kubepods/burstable/pod" + uid + "/" + cid: {Pod: uid, Container: cid},
		"0::/kubepods/pod" + uid + "/crio-" + cid:      {Pod: uid, Container: cid, Runtime: "cri-o"},
		// version 1, and both at once
		"11:pids:/kubepods/besteffort/pod" + uid + "/" + cid + "\n4:cpu,cpuacct:/kubepods/besteffort/pod" + uid + "/" + cid: {Pod: uid, Container: cid},
		"0::/\n8:devices:/kubepods.slice/" + s + "/cri-containerd-" + cid + ".scope":                                        {Pod: uid, Container: cid, Runtime: "containerd"},
		// containerd told to use systemd's names without systemd
		"0::/system.slice/containerd.service/" + s + ":cri-containerd:" + cid: {Pod: uid, Container: cid, Runtime: "containerd"},
		// a node that is itself a container
		"0::/docker/" + node + "/kubelet.slice/kubelet-" + s + "/cri-containerd-" + cid + ".scope":                    {Pod: uid, Container: cid, Runtime: "containerd"},
		"0::/system.slice/docker-" + node + ".scope/kubelet.slice/kubelet-" + s + "/cri-containerd-" + cid + ".scope": {Pod: uid, Container: cid, Runtime: "containerd"},
		"0::/docker/" + node + "/kubelet/kubepods/besteffort/pod" + uid + "/" + cid:                                   {Pod: uid, Container: cid},
		// seen from another cgroup namespace
		"0::/../../" + s + "/cri-containerd-" + cid + ".scope": {Pod: uid, Container: cid, Runtime: "containerd"},
		"0::/../cri-containerd-" + cid + ".scope":              {Container: cid, Runtime: "containerd"},
		"0::/": {},
		// containers without Kubernetes
		"0::/system.slice/docker-" + cid + ".scope":                                                      {Container: cid, Runtime: "docker"},
		"12:memory:/docker/" + cid:                                                                       {Container: cid, Runtime: "docker"},
		"0::/machine.slice/libpod-" + cid + ".scope/container":                                           {Container: cid, Runtime: "podman"},
		"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + cid + ".scope/container": {Container: cid, Runtime: "podman", User: "1000"},
		// neither
		"0::/user.slice/user-1000.slice/session-4.scope": {User: "1000"},
		"0::/system.slice/ollama.service":                {Unit: "ollama.service"},
		// Slurm
		"0::/system.slice/slurmstepd.scope/job_30214/step_0/user/task_3":                                                       {Job: "30214", Step: "0"},
		"0::/system.slice/slurmstepd.scope/job_30214/step_batch/user/task_0":                                                   {Job: "30214", Step: "batch"},
		"0::/system.slice/slurmstepd.scope/job_30214/step_extern/user/task_special":                                            {Job: "30214", Step: "extern"},
		"0::/system.slice/slurmstepd.scope/job_30214/step_0/slurm":                                                             {Job: "30214", Step: "0", Helper: true},
		"0::/system.slice/node12_slurmstepd.scope/job_30214/step_0/user/task_0":                                                {Job: "30214", Step: "0"},
		"0::/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0":                                                  {SLUID: "s5K1KKYAYG5D00", Step: "0"},
		"9:devices:/slurm/uid_1001/job_30214/step_0/task_3\n5:memory:/slurm/uid_1001/job_30214":                                {Job: "30214", Step: "0", User: "1001"},
		"9:devices:/slurm_node12/uid_1001/job_30214/step_batch":                                                                {Job: "30214", Step: "batch", User: "1001"},
		"0::/system.slice/slurmstepd.scope/job_30214/step_0/user/task_0/libpod-payload":                                        {Job: "30214", Step: "0"},
		"0::/kubepods.slice/" + s + "/cri-containerd-" + cid + ".scope/slurm/uid_7/job_5/step_batch":                           {Pod: uid, Container: cid, Runtime: "containerd", Job: "5", Step: "batch", User: "7"},
		"0::/kubepods.slice/" + s + "/cri-containerd-" + cid + ".scope/system.slice/slurmstepd.scope/job_5/step_0/user/task_0": {Pod: uid, Container: cid, Runtime: "containerd", Job: "5", Step: "0"},
		"0::/system.slice/docker-" + node + ".scope/system.slice/slurmstepd.scope/job_5/step_0/user/task_0":                    {Job: "5", Step: "0"},
		// what means nothing
		"": {}, "nonsense": {}, "0:": {}, "::": {}, "0::/podium/podcast": {}, "0::/pod" + strings.Repeat("g", 36): {},
		"0::/" + strings.Repeat("a", 65): {}, "0::/system.slice/slurmstepd.scope/sILOU000000000/step_0": {Step: "0"},
	} {
		if got := Parse(text); got != want {
			t.Errorf("%q\ngot  %+v\nwant %+v", text, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0::/kubepods.slice/" + s + "/cri-containerd-" + cid + ".scope")
	f.Add("9:devices:/slurm/uid_1001/job_30214/step_0/task_3")
	f.Fuzz(func(t *testing.T, text string) {
		p := Parse(text)
		if p.Container != "" && len(p.Container) != 64 || p.Pod != "" && len(p.Pod) != 36 && len(p.Pod) != 32 {
			t.Errorf("%+v", p)
		}
	})
}

// The budget is 1 µs.
func BenchmarkParse(b *testing.B) {
	text := "0::/kubepods.slice/kubepods-burstable.slice/" + s + "/cri-containerd-" + cid + ".scope\n"
	b.ReportAllocs()
	for b.Loop() {
		Parse(text)
	}
}
