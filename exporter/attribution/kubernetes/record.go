package kubernetes

import (
	"fmt"
	"time"
)

const mostContainers = 256 // of one pod; what is beyond is left out

// record is a pod as a source tells of it, before anything in it is believed. The names of the fields
// in JSON are Kubernetes'.
type record struct {
	Namespace, Name, UID string
	Labels, Annotations  map[string]string
	Owners               []reference
	Created              time.Time
	Phase                string
	Containers           []Container // ID as the runtime writes it: containerd://…
}

// Annotations of static pods. The kubelet gives a static pod its configuration's hash for a UID; the API
// server has a mirror of the pod, with a UID of its own and the hash in an annotation.
const (
	configHash = "kubernetes.io/config.hash"
	mirrorOf   = "kubernetes.io/config.mirror"
	queueName  = "kueue.x-k8s.io/queue-name"
)

// reader makes pods of records.
type reader struct {
	labels, annotations allowed
	counts              *counts
}

// pod checks a record. What makes no sense costs itself: the pod when it is the pod's name or UID,
// otherwise the one label, owner or container.
func (d *reader) pod(r *record) (*Pod, error) {
	if !isNamespace(r.Namespace) || !isPodName(r.Name) || !isUID(r.UID) {
		d.counts.rejected.Add(1)
		return nil, fmt.Errorf("kubernetes: no name of a pod: %.80q in %.80q, UID %.80q", r.Name, r.Namespace, r.UID)
	}
	p := &Pod{Namespace: r.Namespace, Name: r.Name, UID: r.UID, Created: r.Created}
	broken := 0
	for _, hash := range []string{r.Annotations[configHash], r.Annotations[mirrorOf]} {
		if hash != "" && hash != p.UID && isUID(hash) {
			p.Hash = hash
		}
	}
	var n int
	p.Labels, n = d.labels.pick(r.Labels, isLabel)
	broken += n
	p.Annotations, n = d.annotations.pick(r.Annotations, isAnnotation)
	broken += n
	p.Shown, n = shown(p.Labels, p.Annotations)
	broken += n
	if queue := r.Labels[queueName]; queue != "" && isLabel(queueName, queue) {
		p.Queue = queue
	}
	for _, o := range chain(r.Owners, r.Labels, r.Annotations, r.Name, r.Created) {
		if !isOwner(o) {
			broken++
			continue
		}
		p.Owners = append(p.Owners, o)
	}
	p.Workload = Owner{Kind: "Pod", Name: p.Name}
	if len(p.Owners) > 0 {
		p.Workload = p.Owners[len(p.Owners)-1]
	}
	if r.Phase == "" || words(r.Phase, "") && len(r.Phase) <= 32 {
		p.Phase = r.Phase
	} else {
		broken++
	}
	for i, c := range r.Containers {
		if i >= mostContainers || !isContainerName(c.Name) {
			broken++
			continue
		}
		c.ID = containerID(c.ID)
		if c.Image != "" && !isRaw(c.Image) {
			c.Image, broken = "", broken+1
		}
		p.Containers = append(p.Containers, c)
	}
	d.counts.rejected.Add(uint64(broken))
	return p, nil
}
