package attribution

import (
	"slices"

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

// house puts jobs into the pods they run in: a pod with Slurm's daemon in it holds a thing for its jobs,
// not beside them. Where a job runs is what its processes say, or else the one pod that was given the
// thing. What the pod's other processes do is then done for the job, if it is the only one in there.
func (o *Owner) house(uses []Use, given bool) {
	var here []Use // by jobs
	for _, u := range uses {
		if u.Thing == o.Thing && u.Type == telemetry.WorkloadTypeSlurm {
			here = append(here, u)
		}
	}
	if here == nil && !slices.ContainsFunc(o.Holders, func(c Claim) bool { return c.Type == telemetry.WorkloadTypeSlurm }) {
		return
	}
	pods, others := o.split(telemetry.WorkloadTypeKubernetes)
	tenants := make([]int, len(pods)) // jobs in each
	for i := range others {
		job := &others[i]
		if job.Type != telemetry.WorkloadTypeSlurm {
			continue
		}
		at := -1
		if said := slices.IndexFunc(here, func(u Use) bool { return u.Job == job.Job && u.Pod != "" }); said >= 0 {
			job.Workload = job.Workload.Inside(here[said].Workload)
			at = slices.IndexFunc(pods, func(p Claim) bool { return p.Namespace == job.Namespace && p.Pod == job.Pod })
		} else if given && len(pods) == 1 {
			at = 0
		}
		if at >= 0 {
			*job = job.inside(pods[at])
			tenants[at]++
		}
	}
	for i, pod := range pods {
		if tenants[i] > 0 {
			continue
		}
		var found []Claim // jobs of which only the processes tell
		for _, u := range here {
			if u.Namespace == pod.Namespace && u.Pod == pod.Pod && !slices.ContainsFunc(found, func(c Claim) bool { return c.Job == u.Job }) {
				found = append(found, Claim{Thing: o.Thing, Workload: u.Workload, How: u.How})
			}
		}
		for _, job := range found {
			job.Share = 1 / float64(len(found))
			others = append(others, job.inside(pod))
		}
		if len(found) == 0 {
			others = append(others, pod)
		}
	}
	o.Holders = others
	o.employ(uses)
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

// employ has the processes of a pod in which one job holds the thing work for the job.
func (o *Owner) employ(uses []Use) {
	for i := range uses {
		u := &uses[i]
		if u.Thing != o.Thing || u.Type != telemetry.WorkloadTypeKubernetes {
			continue
		}
		var of []Claim
		for _, h := range o.Holders {
			if h.Namespace == u.Namespace && h.Pod == u.Pod {
				of = append(of, h)
			}
		}
		if len(of) == 1 && of[0].Type == telemetry.WorkloadTypeSlurm {
			u.Workload = of[0].Workload
		}
	}
}
