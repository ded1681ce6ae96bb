package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
	"github.com/gpumeter/gpumeter/exporter/attribution/process"
	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/doctor"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// cluster is what is known of the pods of this node.
type cluster interface {
	Holdings() *kubernetes.Holdings
	Holder(*kubernetes.Holding) (kubernetes.Pod, bool)
	PodByUID(uid string) (kubernetes.Pod, bool)
	PodByContainer(id string) (kubernetes.Pod, kubernetes.Container, bool)
}

// newCluster asks the kubelet and the API server, where there is a kubelet; nil: there is none.
func newCluster(k config.Kubernetes, log *slog.Logger) (*kubernetes.Client, error) {
	in := func(name string) string { return filepath.Join(k.KubeletDir, filepath.FromSlash(name)) }
	jitter := k.APIJitter
	if jitter == 0 {
		jitter = -1 // at once
	}
	client, err := kubernetes.New(kubernetes.Config{
		Node: k.Node, Metadata: k.PodMetadata, Poll: k.Poll, Jitter: jitter, Logger: log,
		PodLabels: k.PodLabels, PodAnnotations: k.PodAnnotations,
		Socket: in("pod-resources/kubelet.sock"), Checkpoint: in("device-plugins/kubelet_internal_checkpoint"),
		KubeletPods: []string{in("pods-api/pods-api.sock"), in("pods/kubelet.sock")}, // of Kubernetes 1.37, and of 1.35
		Kubelet:     kubernetes.Endpoint{URL: k.KubeletURL, TokenFile: k.KubeletTokenFile, CAFile: k.KubeletCAFile, Insecure: k.KubeletInsecure},
		API:         kubernetes.Endpoint{URL: k.APIURL, TokenFile: k.APITokenFile, CAFile: k.APICAFile},
	})
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(in("pod-resources")); err != nil {
		log.Debug("no kubelet is seen; no pods are asked for", "err", err)
		return nil, nil
	}
	return client, nil
}

// podWorkload names a container of a pod, which may be known by its names alone.
func podWorkload(namespace, pod, container string, known kubernetes.Pod) attribution.Workload {
	return attribution.Workload{
		Type: telemetry.WorkloadTypeKubernetes, Namespace: namespace, Pod: pod, Container: container,
		Kind: known.Workload.Kind, Name: known.Workload.Name,
	}
}

// podClaims are what the kubelet has given. Replicas of a thing are equal shares of it.
func podClaims(pods cluster, devices []snapshot.Device) []attribution.Claim {
	held := pods.Holdings()
	var all []attribution.Claim
	for i := range devices {
		d := &devices[i]
		for _, k := range deviceKeys(d) {
			for _, h := range held.Of(k) {
				if h.Ref.Vendor != "" && h.Ref.Vendor != d.Identity.Vendor {
					continue // another vendor counts its devices the same way
				}
				all = podClaim(all, pods, h, partsOf(d, h.Ref.Part))
			}
		}
		for p := range d.Read.Partitions {
			if uuid := d.Read.Partitions[p].Labels.Get("gpu_partition_uuid"); uuid != "" {
				at := []attribution.Thing{{Device: d.Identity.UUID, Partition: uuid}}
				for _, h := range held.Of(kubernetes.Key{By: kubernetes.ByMIG, Name: uuid}) {
					all = podClaim(all, pods, h, at)
				}
			}
		}
	}
	return all
}

// podClaim adds what one id gives its container; one held to be looked at gives nothing.
func podClaim(all []attribution.Claim, pods cluster, h kubernetes.Holding, things []attribution.Thing) []attribution.Claim {
	if h.Ref.Monitor {
		return all
	}
	pod, _ := pods.Holder(&h)
	c := attribution.Claim{
		Workload: podWorkload(h.Namespace, h.Pod, h.Container, pod), Detail: attribution.Detail{Chain: pod.Chain(), Shown: pod.Shown},
		Share: 1 / float64(max(h.Replicas, 1)), How: "pod resources",
	}
	for _, k := range pod.Containers {
		if k.Name == h.Container {
			c.Image = k.Image
		}
	}
	for _, c.Thing = range things {
		all = append(all, c)
	}
	return all
}

// deviceKeys are the ways in which ids name a device as a whole.
func deviceKeys(d *snapshot.Device) []kubernetes.Key {
	keys := []kubernetes.Key{{By: kubernetes.ByUUID, Name: d.Identity.UUID}, {By: kubernetes.ByIndex, Number: d.Identity.Index}}
	if d.Identity.PCI != "" {
		keys = append(keys, kubernetes.Key{By: kubernetes.ByPCI, Name: d.Identity.PCI})
	}
	if d.Identity.Serial != "" {
		keys = append(keys, kubernetes.Key{By: kubernetes.BySerial, Name: d.Identity.Serial})
	}
	if minor, err := strconv.Atoi(d.Identity.Minor); err == nil {
		keys = append(keys, kubernetes.Key{By: kubernetes.ByMinor, Number: minor})
	}
	return keys
}

// partsOf are the device, or those of its partitions that a part names. One named by where it lies
// is known by a ResourceSlice or not at all.
func partsOf(d *snapshot.Device, part kubernetes.Part) []attribution.Thing {
	switch part.Of {
	case kubernetes.Whole:
		return []attribution.Thing{{Device: d.Identity.UUID}}
	case kubernetes.ByInstance:
		return things(d, strconv.Itoa(part.Instance))
	}
	return nil
}

// podOf says whose work a process in a pod does.
func podOf(pods cluster, p process.Process) (attribution.Workload, string, bool) {
	pod, container, ok := pods.PodByContainer(p.Container)
	if ok {
		return podWorkload(pod.Namespace, pod.Name, container.Name, pod), "cgroup of the container", true
	}
	pod, known := pods.PodByUID(p.Pod)
	var only *kubernetes.Holding // of the pod's containers the one that holds anything
	for _, h := range pods.Holdings().All() {
		switch {
		case h.Ref.Monitor || h.UID != p.Pod && (!known || h.Namespace != pod.Namespace || h.Pod != pod.Name):
		case only == nil:
			only = &h
		case only.Container != h.Container:
			only = &kubernetes.Holding{Namespace: h.Namespace, Pod: h.Pod}
		}
	}
	switch {
	case only != nil:
		return podWorkload(only.Namespace, only.Pod, only.Container, pod), "cgroup of the pod", true
	case known:
		return podWorkload(pod.Namespace, pod.Name, "", pod), "cgroup of the pod", true
	}
	return attribution.Workload{}, doctor.NoPod, false
}
