package doctor

import (
	"cmp"
	"fmt"

	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
)

// Cluster knows the pods and their devices; a kubernetes.Client is one.
type Cluster interface {
	Sources() map[kubernetes.Source]kubernetes.Health
	Pods() (by kubernetes.Source, n int, h kubernetes.Health)
	Holdings() *kubernetes.Holdings
}

// Kubernetes returns the providers of a node that is part of a cluster.
func Kubernetes(c Cluster) []Witness {
	health := c.Sources()
	by, pods, _ := c.Pods()
	held := c.Holdings()
	dra := false
	for _, h := range held.All() {
		dra = dra || h.Claim.Driver != ""
	}
	var out []Witness
	for _, source := range kubernetesOrder {
		h, used := health[source]
		if !used {
			continue
		}
		w := Witness{
			Name: string(source), Tells: told[source], State: cmp.Or(string(h.Reason), WitnessOK), Since: h.Since, Read: h.Read,
		}
		if h.Reason == kubernetes.Waiting && spare(source, by != "", dra) {
			w.State = WitnessSpare
		} else if h.Reason != "" {
			w.Err = h.Err
			w.Advice = advice(cause{source, h.Reason}, by != "", dra)
		}
		switch {
		case source == kubernetes.PodResources && !h.Read.IsZero():
			w.Knows = fmt.Sprintf("%d devices, partitions or shares allocated", len(held.All()))
		case source == by:
			w.Knows = fmt.Sprintf("%d pods", pods)
		}
		out = append(out, w)
	}
	return out
}

// NoKubelet returns the provider of a machine without a kubelet.
func NoKubelet(dir string) Witness {
	return Witness{
		Name: string(kubernetes.PodResources), Tells: told[kubernetes.PodResources], State: string(kubernetes.Missing),
		Err: "no kubelet on this machine: " + dir + " has no pod-resources",
	}
}

// spare reports whether a provider is not needed. One provider of pod metadata is enough, and only DRA needs
// ResourceSlices.
func spare(s kubernetes.Source, podsKnown, dra bool) bool {
	switch s {
	case kubernetes.KubeletPods, kubernetes.KubeletHTTPS, kubernetes.APIServer:
		return podsKnown
	case kubernetes.Slices:
		return !dra
	}
	return false
}

// advice returns what to do; empty: nothing.
func advice(c cause, podsKnown, dra bool) string {
	if spare(c.Source, podsKnown, dra) {
		return ""
	}
	if a, known := kubernetesAdvice[c]; known {
		return a
	}
	if c.Source == kubernetes.APIServer && (c.Reason == kubernetes.Unavailable || c.Reason == kubernetes.Refused || c.Reason == kubernetes.Hanging) {
		return unreachable
	}
	return ""
}
