package process

import (
	"os"
	"strings"
	"testing"
)

const (
	uid  = "7d2f0a4c-9b1e-4a1c-8d55-0c2c0a6f3b11"
	cid  = "3f1c5b6d7e8f90123456789abcdef0123456789abcdef0123456789abcdef012"
	node = "aa11bb22cc33dd44ee55ff66aa11bb22cc33dd44ee55ff66aa11bb22cc33dd44"
	s    = "kubepods-burstable-pod7d2f0a4c_9b1e_4a1c_8d55_0c2c0a6f3b11.slice"
)

// inNode are the homes of an exporter in a node that is a container.
var inNode = []string{"/docker/" + node + "/", "/system.slice/docker-" + node + ".scope/"}

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
		"0::/kubepods/pod" + uid + "/" + cid + "/docker/" + node:                                   {Pod: uid, Container: cid}, // docker in a pod
		"0::/docker/" + node + "/docker/" + cid + "/system.slice/x.service":                        {Container: cid, Runtime: "docker"},
		"0::/kubepods.slice/" + s + "/cri-containerd-" + cid + ".scope/system.slice/nginx.service": {Pod: uid, Container: cid, Runtime: "containerd"},
		// containers without Kubernetes
		"0::/system.slice/docker-" + cid + ".scope":                                                      {Container: cid, Runtime: "docker"},
		"12:memory:/docker/" + cid:                                                                       {Container: cid, Runtime: "docker"},
		"0::/machine.slice/libpod-" + cid + ".scope/container":                                           {Container: cid, Runtime: "podman"},
		"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + cid + ".scope/container": {Unit: "podman/3f1c5b6d7e8f", User: "1000"},
		"0::/machine.slice/libpod-conmon-" + cid + ".scope":                                              {Runtime: "podman", Helper: true},
		"8:devices:/libpod_parent/libpod-" + cid:                                                         {Container: cid, Runtime: "podman"},
		"0::/system.slice/nerdctl-" + cid + ".scope":                                                     {Container: cid, Runtime: "containerd"},
		"0::/default/" + cid:                                                                             {Container: cid}, // nerdctl without systemd: the namespace
		// neither
		"9:devices:/user.slice\n5:pids:/user.slice/user-1000.slice/user@1000.service\n1:name=systemd:/user.slice/user-1000.slice/user@1000.service/app.slice/lab.service": {Unit: "lab.service", User: "1000"},
		"9:devices:/system.slice/ollama.service\n5:pids:/\n1:name=systemd:/system.slice/ollama.service":                                                                   {Unit: "ollama.service"},
		"0::/system.slice/system-vllm.slice/vllm@8000.service/workers":                                                                                                    {Unit: "vllm@8000.service"},
		"0::/system.slice/ollama.service (deleted)":                                                                                                                       {Unit: "ollama.service"},
		"0::/user.slice/user-1000.slice/session-4.scope":                                                                                                                  {User: "1000"},
		"0::/system.slice/ollama.service":                                                                                                                                 {Unit: "ollama.service"},
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
		"0::/kubepods.slice/" + s + "/cri-containerd-" + cid + ".scope/slurm/uid_7/job_5/step_batch":                           {Pod: uid, Container: cid, Runtime: "containerd", Job: "5", Step: "batch"},
		"0::/kubepods.slice/" + s + "/cri-containerd-" + cid + ".scope/system.slice/slurmstepd.scope/job_5/step_0/user/task_0": {Pod: uid, Container: cid, Runtime: "containerd", Job: "5", Step: "0"},
		"0::/system.slice/docker-" + node + ".scope/system.slice/slurmstepd.scope/job_5/step_0/user/task_0":                    {Job: "5", Step: "0"},
		"9:freezer:/slurm_vm/uid_65534/job_4 (deleted)\n2:cpuset:/":                                                            {Job: "4", User: "65534"},
		"0::/system.slice/slurmstepd.scope/job_x/step_0/user/task_0":                                                           {Step: "0"},
		"0::/system.slice/slurmstepd.scope/job_5/step_0/user/task_0/slurm":                                                     {Job: "5", Step: "0"},
		"0::/system.slice/slurmstepd.scope/job_12345678901/step_0":                                                             {Step: "0"},
		// what users make below their own slices, and jobs below their groups
		"0::/user.slice/user-1000.slice/user@1000.service/slurm/job_99/step_0":                                                                          {User: "1000"},
		"0::/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/job_99/step_0":                                                               {User: "1000"},
		"0::/user.slice/user-1000.slice/user@1000.service/kubepods-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/cri-containerd-" + cid + ".scope": {Unit: "containerd/3f1c5b6d7e8f", User: "1000"},
		"0::/system.slice/slurmstepd.scope/job_30214/step_0/user/task_0/job_99/step_7":                                                                  {Job: "30214", Step: "0"},
		"0::/system.slice/slurm_exporter.service":                                                                                                       {Unit: "slurm_exporter.service"},
		// what means nothing
		"": {}, "nonsense": {}, "0:": {}, "::": {}, "0::/podium/podcast": {}, "0::/pod" + strings.Repeat("g", 36): {},
		"0::/" + strings.Repeat("a", 65): {}, "0::/system.slice/slurmstepd.scope/sILOU000000000/step_0": {Step: "0"},
	} {
		if got := Parse(text, inNode); got != want {
			t.Errorf("%q\ngot  %+v\nwant %+v", text, got, want)
		}
	}
}

// Each line of testdata/cgroups.txt says what its paths must be parsed to.
func TestSamples(t *testing.T) {
	text, err := os.ReadFile("testdata/cgroups.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		n++
		cgroup, said, _ := strings.Cut(strings.TrimSpace(line), " => ")
		got := Parse(strings.ReplaceAll(cgroup, " | ", "\n"), inNode)
		said, _, _ = strings.Cut(said, " (")
		sort, said, _ := strings.Cut(said, " ")
		if sort != "k8s" && got.Pod != "" || !strings.HasPrefix(sort, "slurm") && got.Job+got.SLUID != "" {
			t.Errorf("%s\ngot  %+v\nwant %s", cgroup, got, sort)
		}
		for word := range strings.FieldsSeq(said) {
			key, want, _ := strings.Cut(word, "=")
			want, _, _ = strings.Cut(want, "(")
			of := map[string]string{
				"rt": got.Runtime, "cid": got.Container, "job": got.Job, "sluid": got.SLUID, "step": got.Step, "unit": got.Unit,
				"user": got.User, "uid_user": got.User, "uid": got.Pod,
			}
			if sort == "slurm" {
				of["uid"] = got.User
			}
			short, cut := strings.CutSuffix(want, "…")
			switch have, known := of[key]; {
			case !known: // what a place does not hold, and words of prose
			case want == "none" && have == "" || have == want || cut && strings.HasPrefix(have, short) && have != "":
			default:
				t.Errorf("%s\ngot  %+v\nwant %s", cgroup, got, word)
			}
		}
	}
	if n < 30 {
		t.Errorf("%d samples were read", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0::/kubepods.slice/" + s + "/cri-containerd-" + cid + ".scope")
	f.Add("9:devices:/slurm/uid_1001/job_30214/step_0/task_3")
	f.Add("0::/user.slice/user-1000.slice/session-4.scope (deleted)")
	f.Fuzz(func(t *testing.T, text string) {
		p := Parse(text, nil)
		if p.Container != "" && len(p.Container) != 64 || p.Pod != "" && len(p.Pod) != 36 && len(p.Pod) != 32 {
			t.Errorf("%+v", p)
		}
		if p.Job != "" && !isNumber(p.Job) || p.User != "" && !isNumber(p.User) || p.SLUID != "" && p.Job != "" && !isSLUID(p.SLUID) {
			t.Errorf("%+v", p)
		}
	})
}
