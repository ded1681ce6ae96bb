package attribution

import (
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Inside is a job that runs in a pod: one workload, with the labels of both.
func (w Workload) Inside(pod Workload) Workload {
	w.Namespace, w.Pod, w.Container, w.Kind, w.Name = pod.Namespace, pod.Pod, pod.Container, pod.Kind, pod.Name
	return w
}

// inside is a job in a pod that holds the thing too: it has its share of what the pod has.
func (c Claim) inside(pod Claim) Claim {
	c.Workload = c.Workload.Inside(pod.Workload)
	c.Chain, c.Image, c.Shown, c.Awaited = pod.Chain, pod.Image, pod.Shown, pod.Awaited
	c.Share *= pod.Share
	c.How += ", " + pod.How
	return c
}

// house puts jobs into the pod they run in: a pod with Slurm's daemon in it holds a thing for its jobs, not
// beside them. It takes what tenants cannot write: the kubelet gave the thing to exactly one pod, and the
// prolog gave it to the jobs. Where several pods hold the thing, the jobs hold it beside them. The names of
// the control groups in a pod say nothing here: who may write them may use any job's.
func (o *Owner) house() {
	pods, others := o.split(telemetry.WorkloadTypeKubernetes)
	if len(pods) != 1 {
		return
	}
	jobs := 0
	for i := range others {
		if others[i].Type == telemetry.WorkloadTypeSlurm {
			others[i] = others[i].inside(pods[0])
			jobs++
		}
	}
	if jobs > 0 {
		o.Holders = others
	}
}

// split takes the holders of one sort apart from the others.
func (o *Owner) split(sort telemetry.WorkloadType) (of, others []Claim) {
	for _, h := range o.Holders {
		if h.Type == sort {
			of = append(of, h)
		} else {
			others = append(others, h)
		}
	}
	return of, others
}

// employ has the processes of a pod work for the jobs that hold the thing in it: for the only one, or else for
// the one that their control group names. Processes of a pod that name any other job work for the pod.
func (o *Owner) employ(uses []Use) {
	for i := range uses {
		u := &uses[i]
		if u.Thing != o.Thing || u.Pod == "" {
			continue
		}
		named := u.Job
		u.Workload = u.pod()
		var jobs []*Claim
		for k := range o.Holders {
			if h := &o.Holders[k]; h.Job != "" && h.Namespace == u.Namespace && h.Pod == u.Pod {
				jobs = append(jobs, h)
			}
		}
		for _, h := range jobs {
			if len(jobs) == 1 || h.Job == named {
				u.Workload = h.Workload
			}
		}
	}
}

// pod is the pod that the workload is or runs in.
func (w Workload) pod() Workload {
	return Workload{
		Type: telemetry.WorkloadTypeKubernetes, Namespace: w.Namespace, Pod: w.Pod, Container: w.Container, Kind: w.Kind, Name: w.Name,
	}
}
