package kubernetes

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// reference is an owner as the pod's metadata names it.
type reference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Controller bool   `json:"controller"`
}

func (r reference) owner() Owner {
	group, _, ok := strings.Cut(r.APIVersion, "/")
	if !ok {
		group = ""
	}
	return Owner{Kind: r.Kind, Name: r.Name, Group: group}
}

// chain names who made a pod, the nearest first. Only the nearest is in the pod's metadata; those
// above it follow from its name and from labels their controllers set. No object is asked for. A label
// counts only where the nearest owner is of a kind that the label's controller makes, since anybody may
// write any label on a pod of theirs.
func chain(owners []reference, labels, annotations map[string]string, pod string, created time.Time) []Owner {
	nearest, ok := controller(owners)
	if ok && nearest == (Owner{Kind: "Node", Name: nearest.Name}) {
		return nil // static pods
	}
	if !ok {
		if nearest, ok = fromLabels(labels, annotations, pod); !ok {
			return nil
		}
	}
	out := []Owner{nearest}
	if next, ok := fromName(nearest, labels, created); ok {
		out = append(out, next)
	}
	for _, next := range above(nearest, labels) {
		if next.Name != "" && next != out[len(out)-1] {
			out = append(out, next)
		}
	}
	return out
}

// controller is the owner that manages the pod, or the first where none says it does.
func controller(owners []reference) (Owner, bool) {
	for _, o := range owners {
		if o.Controller {
			return o.owner(), true
		}
	}
	if len(owners) > 0 {
		return owners[0].owner(), true
	}
	return Owner{}, false
}

// Groups of the owners known here.
const (
	apps    = "apps"
	batch   = "batch"
	ray     = "ray.io"
	volcano = "batch.volcano.sh"
	argo    = "argoproj.io"
)

// fromLabels finds the nearest owner of a pod whose references are gone.
func fromLabels(labels, annotations map[string]string, pod string) (Owner, bool) {
	first := func(names ...string) string {
		for _, n := range names {
			if v := labels[n]; v != "" {
				return v
			}
		}
		return ""
	}
	var out Owner
	switch {
	case labels["volcano.sh/job-name"] != "":
		out = Owner{Kind: "Job", Name: labels["volcano.sh/job-name"], Group: volcano}
	case first("batch.kubernetes.io/job-name", "job-name") != "":
		out = Owner{Kind: "Job", Name: first("batch.kubernetes.io/job-name", "job-name"), Group: batch}
	case labels["ray.io/cluster"] != "":
		out = Owner{Kind: "RayCluster", Name: labels["ray.io/cluster"], Group: ray}
	case labels["workflows.argoproj.io/workflow"] != "":
		out = Owner{Kind: "Workflow", Name: labels["workflows.argoproj.io/workflow"], Group: argo}
	case pod != "" && labels["statefulset.kubernetes.io/pod-name"] == pod:
		name, ordinal, ok := cutLast(pod)
		if _, digits := number(ordinal); !ok || !digits {
			return Owner{}, false
		}
		out = Owner{Kind: "StatefulSet", Name: name, Group: apps}
	case labels["scheduling.k8s.io/group-name"] != "":
		out = Owner{Kind: "PodGroup", Name: labels["scheduling.k8s.io/group-name"]}
	case annotations["scheduling.k8s.io/group-name"] != "":
		out = Owner{Kind: "PodGroup", Name: annotations["scheduling.k8s.io/group-name"]}
	}
	return out, out.Name != ""
}

// fromName finds the owner whose name is the start of the one it made.
func fromName(of Owner, labels map[string]string, created time.Time) (Owner, bool) {
	switch {
	case of.Kind == "ReplicaSet" && of.Group == apps:
		for _, c := range []struct {
			label string
			owner Owner
		}{
			{"rollouts-pod-template-hash", Owner{Kind: "Rollout", Group: argo}},
			{"pod-template-hash", Owner{Kind: "Deployment", Group: apps}},
		} {
			hash := labels[c.label]
			name, ok := strings.CutSuffix(of.Name, "-"+hash)
			if ok && name != "" && isTemplateHash(hash) {
				c.owner.Name = name
				return c.owner, true
			}
		}
	case of.Kind == "Job" && of.Group == batch:
		if name, when, ok := cutLast(of.Name); ok && name != "" && isSchedule(when, created) {
			return Owner{Kind: "CronJob", Name: name, Group: batch}, true
		}
	}
	return Owner{}, false
}

// isTemplateHash says whether a string is of the letters Kubernetes makes hashes of.
func isTemplateHash(s string) bool {
	return s != "" && strings.Trim(s, "bcdfghjklmnpqrstvwxz2456789") == ""
}

// isSchedule says whether a string is the time a CronJob was due, for a pod made at the given time:
// minutes since 1970, or seconds before Kubernetes 1.21, and in the year before the pod. A date
// someone wrote, such as 20261121, is not.
func isSchedule(s string, created time.Time) bool {
	if len(s) != 8 && len(s) != 10 || strings.Trim(s, "0123456789") != "" {
		return false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return false
	}
	if len(s) == 8 {
		n *= 60
	}
	late := created.Sub(time.Unix(n, 0))
	return late > -24*time.Hour && late < 366*24*time.Hour
}

// above are the owners above the nearest that labels tell, in rising order.
func above(nearest Owner, labels map[string]string) []Owner {
	kind := func(names ...string) bool { return slices.Contains(names, nearest.Kind) }
	switch {
	case kind("Job") && nearest.Group == batch && labels["jobset.sigs.k8s.io/jobset-name"] != "":
		return []Owner{{Kind: "JobSet", Name: labels["jobset.sigs.k8s.io/jobset-name"], Group: "jobset.x-k8s.io"}}
	case kind("StatefulSet", "Pod") && labels["leaderworkerset.sigs.k8s.io/name"] != "":
		return []Owner{{Kind: "LeaderWorkerSet", Name: labels["leaderworkerset.sigs.k8s.io/name"], Group: "leaderworkerset.x-k8s.io"}}
	case kind("RayCluster") || kind("Job") && nearest.Group == batch:
		if crd := labels["ray.io/originated-from-crd"]; crd == "RayJob" || crd == "RayService" {
			return []Owner{{Kind: crd, Name: labels["ray.io/originated-from-cr-name"], Group: ray}}
		}
	}
	return nil
}
