package attribution

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

var gpu0 = Thing{Device: "GPU-0"}

func inPod(pod string, share float64) Claim {
	return Claim{
		Thing: gpu0, Share: share, How: "pod resources", Detail: Detail{Chain: "NodeSet/slurm", Image: "slurmd"},
		Workload: Workload{Type: telemetry.WorkloadTypeKubernetes, Namespace: "hpc", Pod: pod, Container: "slurmd", Kind: "NodeSet", Name: "slurm"},
	}
}

func ofJob(job string, share float64) Claim {
	return Claim{
		Thing: gpu0, Share: share, How: "job mapping", Detail: Detail{JobName: "train"},
		Workload: Workload{Type: telemetry.WorkloadTypeSlurm, Job: job, User: "ada"},
	}
}

// by is a process of a job or of a pod, or of a job in a pod.
func by(job, pod string) Use {
	u := Use{Thing: gpu0, How: "cgroup", Workload: Workload{Type: telemetry.WorkloadTypeSlurm, Job: job}}
	switch {
	case job == "":
		u.Workload = inPod(pod, 1).Workload
	case pod != "":
		u.Workload = u.Workload.Inside(inPod(pod, 1).Workload)
	}
	return u
}

// A Slurm job inside a pod is one workload with the labels of both.
func TestJobInPod(t *testing.T) {
	for name, c := range map[string]struct {
		claims []Claim
		uses   []Use
		want   string // holders as job@pod=share, by order
	}{
		"a pod alone":                             {[]Claim{inPod("a", 1)}, []Use{by("", "a")}, "@a=1"},
		"a job alone":                             {[]Claim{ofJob("7", 1)}, []Use{by("7", "")}, "7@=1"},
		"the job in the one pod":                  {[]Claim{inPod("a", 1), ofJob("7", 1)}, nil, "7@a=1"},
		"two jobs share the pod's GPU":            {[]Claim{inPod("a", 1), ofJob("7", .5), ofJob("8", .5)}, nil, "7@a=0.5 8@a=0.5"},
		"a job in a share of the GPU":             {[]Claim{inPod("a", .25), ofJob("7", 1)}, nil, "7@a=0.25"},
		"two pods, and one names the job":         {[]Claim{inPod("a", .5), inPod("b", .5), ofJob("7", 1)}, []Use{by("7", "b")}, "@a=0.5 @b=0.5 7@=1"},
		"two pods":                                {[]Claim{inPod("a", .5), inPod("b", .5), ofJob("7", 1)}, nil, "@a=0.5 @b=0.5 7@=1"},
		"only the pod names the job":              {[]Claim{inPod("a", 1)}, []Use{by("7", "a"), by("7", "a")}, "@a=1"},
		"another pod names the job":               {[]Claim{inPod("a", 1), ofJob("7", 1)}, []Use{by("7", "b")}, "7@a=1"},
		"a pod names another job":                 {[]Claim{inPod("a", 1), ofJob("7", 1)}, []Use{by("8", "a")}, "7@a=1"},
		"a job of another pod is no part of this": {[]Claim{inPod("a", 1)}, []Use{by("7", "b")}, "@a=1"},
		"the pod was given nothing":               {[]Claim{ofJob("7", 1)}, []Use{by("7", "a")}, "7@=1"},
		"nobody was given anything":               {nil, []Use{by("7", "a"), by("", "a"), by("8", "")}, "@a=0.5 8@=0.5"},
		"another thing's processes":               {[]Claim{inPod("a", 1)}, []Use{{Thing: Thing{Device: "GPU-1"}, Workload: by("7", "a").Workload}}, "@a=1"},
	} {
		t.Run(name, func(t *testing.T) {
			o := own(gpu0, c.claims, c.uses)
			var got []string
			for _, h := range o.Holders {
				got = append(got, fmt.Sprintf("%s@%s=%v", h.Job, h.Pod, h.Share))
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}

func TestJobInPodIsDescribed(t *testing.T) {
	o := own(gpu0, []Claim{inPod("a", 1), ofJob("7", 1)}, nil)
	want := Claim{
		Thing: gpu0, Share: 1, How: "job mapping, pod resources", Detail: Detail{Chain: "NodeSet/slurm", Image: "slurmd", JobName: "train"},
		Workload: Workload{Type: telemetry.WorkloadTypeSlurm, Namespace: "hpc", Pod: "a", Container: "slurmd", Kind: "NodeSet", Name: "slurm", Job: "7", User: "ada"},
	}
	if sole := o.Sole(); sole == nil || *sole != want {
		t.Errorf("got  %+v\nwant %+v", sole, want)
	}
}

// On gauges a job in a pod has six labels: with those of a partition, and of its metrics, that makes fourteen.
func TestJobInPodIsShortOnGauges(t *testing.T) {
	w := Workload{
		Type: telemetry.WorkloadTypeSlurm, Namespace: "hpc", Pod: "a", Container: "slurmd", Kind: "NodeSet", Name: "slurm",
		Job: "7", User: "ada", Account: "physics", Partition: "gpu",
	}
	of := telemetry.PartitionAttributes{PartitionUUID: "MIG-0", PartitionID: "1/0", PartitionProfile: "1g.10gb"}.Labels()
	want := of.Text() + `,k8s_namespace_name="hpc",k8s_pod_name="a",slurm_job_id="7",slurm_user="ada",slurm_account="physics",slurm_partition="gpu"`
	if got := New(Config{}).join(of, &w).Text(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := len(w.ownerLabels(gpu0).Pairs()); got != 10 {
		t.Errorf("the owner's info has %d labels, want the GPU's and all nine of the owner", got)
	}
}

// What processes in the pod take, in the job's control group or not, is the job's.
func TestProcessesOfAJobInAPod(t *testing.T) {
	n := newNode(t, Config{Hold: -1, Place: func(pid int64) (Workload, string, bool) {
		w := []Workload{by("7", "a").Workload, by("", "a").Workload, by("7", "").Workload}
		return w[pid-1], "cgroup", true
	}})
	n.claims = []Claim{inPod("a", 1), ofJob("7", 1)}
	for pid := range 3 {
		p := telemetry.Part[telemetry.Process]{Labels: metric.NewLabels(metric.Label{Name: "process_pid", Value: fmt.Sprint(pid + 1)})}
		p.Read.Processes.MemoryUsage.Set(1 << 30)
		n.read.Processes = append(n.read.Processes, p)
	}
	n.read.Memory.Usage.Set(3 << 30)
	n.picture(0, 0, 0)
	n.picture(10e9, 10, 1000)
	if len(n.last.Workloads) != 3 {
		t.Errorf("%d workloads, want the job, unattributed and unallocated", len(n.last.Workloads))
	}
	both := n.of(`gpu_workload_type="slurm"`, `k8s_pod_name="a"`, `slurm_job_id="7"`)
	if both == nil {
		t.Fatal("no series with both sets of labels")
	}
	n.want("memory", both.Holding.MemoryUsage, 3<<30)
	n.want("busy", both.Accounting.BusyTime, 10)
	n.want("nobody's", n.of(`"unattributed"`).Holding.MemoryUsage, 0)
}

// Of two jobs in one pod a process works for the one its control group names, if that one holds the device
// in this pod, and else for the pod.
func TestOwner_EmploysByJob(t *testing.T) {
	uses := []Use{by("7", "a"), by("8", "a"), by("9", "a"), by("", "a"), by("7", "b"), by("7", "")}
	own(gpu0, []Claim{inPod("a", 1), ofJob("7", .5), ofJob("8", .5)}, uses)
	for i, want := range []string{"7@a", "8@a", "@a", "@a", "@b", "7@"} {
		if got := uses[i].Job + "@" + uses[i].Pod; got != want {
			t.Errorf("use %d is of %s, want %s", i, got, want)
		}
	}
}
