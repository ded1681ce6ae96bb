package kubernetes

import (
	"strings"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// Pod is what is known of a pod. It is never changed: what it refers to is shared.
type Pod struct {
	Namespace, Name string
	UID             string
	// Hash stands in the control groups of a static pod in place of the UID, when the UID is that of
	// the mirror the API server has of it.
	Hash        string
	Labels      map[string]string // those on the allow-list
	Annotations map[string]string // those on the allow-list
	// Shown are both as k8s_pod_label_… and k8s_pod_annotation_…, by name.
	Shown      *metric.Labels
	Owners     []Owner     // the nearest first; empty: nobody made it
	Workload   Owner       // the last of the owners, or the pod itself
	Queue      string      // Kueue's local queue
	Phase      string      // Pending, Running …; empty where the source tells metadata only
	Created    time.Time   // to the second
	Containers []Container // empty where the source tells metadata only
}

// Owner is an object that made a pod, or that made what made it.
type Owner struct {
	Kind, Name string
	Group      string // API group: apps; empty: the core group
}

// Container is one of a pod.
type Container struct {
	Name  string
	ID    string // 64 hexadecimal digits; empty before it is started
	Image string // as the pod asks for it
	Init  bool   // runs to its end before the others start, so that it no longer holds what it held
	Ended bool   // has run to its end
}

// terminal says whether the pod will never run again.
func (p *Pod) terminal() bool { return p.Phase == "Succeeded" || p.Phase == "Failed" }

// Chain is for people: Job/train-0, JobSet/train.
func (p *Pod) Chain() string {
	var out []string
	for _, o := range p.Owners {
		out = append(out, o.Kind+"/"+o.Name)
	}
	return strings.Join(out, ", ")
}
