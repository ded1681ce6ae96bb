package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
	"github.com/gpumeter/gpumeter/exporter/attribution/process"
	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/doctor"
	"github.com/gpumeter/gpumeter/exporter/self"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// cluster is what is known of the pods of this node.
type cluster interface {
	Holdings() *kubernetes.Holdings
	Holder(*kubernetes.Holding) (kubernetes.Pod, bool)
	Pods() (by kubernetes.Source, n int, h kubernetes.Health)
	PodByUID(uid string) (kubernetes.Pod, bool)
	PodByContainer(id string) (kubernetes.Pod, kubernetes.Container, bool)
}

// membership is what a node knows of its cluster, which it may become part of only later.
type membership struct {
	*kubernetes.Client
	directory string // the kubelet's
	asked     bool   // somebody says that there is a cluster
	seen      atomic.Bool
	log       *slog.Logger
}

// lookEvery is how often a machine without a kubelet looks whether there is one now.
const lookEvery = 10 * time.Second

// newMembership asks nobody before it runs.
func newMembership(k config.Kubernetes, log *slog.Logger) (*membership, error) {
	in := func(name string) string { return filepath.Join(k.KubeletDir, filepath.FromSlash(name)) }
	jitter := k.APIJitter
	if jitter == 0 {
		jitter = -1 // at once
	}
	if err := checkKubernetes(k); err != nil {
		return nil, err
	}
	client, err := kubernetes.New(kubernetes.Config{
		Node: k.Node, Metadata: k.PodMetadata, Poll: k.Poll, Jitter: jitter, Logger: log,
		PodLabels: k.PodLabels, PodAnnotations: k.PodAnnotations,
		Socket: in("pod-resources/kubelet.sock"), Checkpoint: in("device-plugins/kubelet_internal_checkpoint"),
		KubeletPods: []string{in("pods-api/pods-api.sock"), in("pods/kubelet.sock")}, // of Kubernetes 1.36, and as first proposed
		Kubelet:     kubernetes.Endpoint{URL: k.KubeletURL, TokenFile: k.KubeletTokenFile, CAFile: k.KubeletCAFile, Insecure: k.KubeletInsecure},
		API:         kubernetes.Endpoint{URL: k.APIURL, TokenFile: k.APITokenFile, CAFile: k.APICAFile},
	})
	if err != nil {
		return nil, err
	}
	m := &membership{Client: client, directory: k.KubeletDir, asked: k.Node != "" || inPod(), log: log}
	m.look()
	return m, nil
}

// checkKubernetes refuses names and patterns that Kubernetes cannot have.
func checkKubernetes(k config.Kubernetes) error {
	var faults []error
	for _, c := range []struct {
		flag string
		kubernetes.Config
	}{
		{"kubernetes.node", kubernetes.Config{Node: k.Node}},
		{"kubernetes.pod-labels", kubernetes.Config{PodLabels: k.PodLabels}},
		{"kubernetes.pod-annotations", kubernetes.Config{PodAnnotations: k.PodAnnotations}},
	} {
		_, err := kubernetes.New(c.Config)
		faults = append(faults, config.Refuse(c.flag, err))
	}
	return errors.Join(faults...)
}

// inPod says whether this process runs in a pod.
func inPod() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" }

// look looks whether the machine has a kubelet.
func (m *membership) look() bool {
	_, err := os.Stat(filepath.Join(m.directory, "pod-resources"))
	if err == nil || m.asked {
		m.seen.Store(true)
	}
	return m.seen.Load()
}

// here says whether the machine is part of a cluster.
func (m *membership) here() bool { return m.seen.Load() }

// Run asks the kubelet and the API server from when there is a kubelet.
func (m *membership) Run(ctx context.Context) {
	if !m.here() {
		m.log.Info("no kubelet is seen; no pods are asked for until there is one", "directory", m.directory)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for !m.look() {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		m.log.Info("a kubelet is seen", "directory", m.directory)
	}
	m.Client.Run(ctx)
}

// targetOf is the machine as its cluster knows it.
func targetOf(n kubernetes.Node) self.Target {
	return self.Target{Node: n.Name, Region: n.Region, Zone: n.Zone, Type: n.InstanceType}
}

// podWorkload names a container of a pod, which may be known by its names alone.
func podWorkload(namespace, pod, container string, known kubernetes.Pod) attribution.Workload {
	return attribution.Workload{
		Type: telemetry.WorkloadTypeKubernetes, Namespace: namespace, Pod: pod, Container: container,
		Kind: known.Workload.Kind, Name: known.Workload.Name,
	}
}

// podClaims are what the kubelet has given. Replicas of a thing are equal shares of it.
func podClaims(pods cluster, devices []attribution.DeviceRef) []attribution.Claim {
	held := pods.Holdings()
	var all []attribution.Claim
	for i := range devices {
		d := &devices[i]
		for _, k := range deviceKeys(d) {
			for _, h := range held.Of(k) {
				if h.Ref.Vendor != "" && h.Ref.Vendor != d.Vendor {
					continue // another vendor counts its devices the same way
				}
				all = podClaim(all, pods, h, partsOf(d, h.Ref.Part))
			}
		}
		for p := range d.Partitions {
			if uuid := d.Partitions[p].Labels.Get("gpu_partition_uuid"); uuid != "" {
				at := []attribution.Thing{{Device: d.UUID, Partition: uuid}}
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
	pod, known := pods.Holder(&h)
	if h.Ref.Monitor || done(pod, h.Container) {
		return all
	}
	c := attribution.Claim{
		Workload: podWorkload(h.Namespace, h.Pod, h.Container, pod), Detail: attribution.Detail{Chain: pod.Chain(), Shown: pod.Shown, Awaited: !known && awaited(pods)},
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

// awaited says whether what pods are is still to be told for the first time.
func awaited(pods cluster) bool {
	by, _, h := pods.Pods()
	switch h.Reason {
	case kubernetes.Unset, kubernetes.Missing, kubernetes.Denied, kubernetes.Unsupported:
		return false
	}
	return by == ""
}

// done says whether a container has run to its end before those that hold what it held now.
func done(pod kubernetes.Pod, container string) bool {
	return slices.ContainsFunc(pod.Containers, func(c kubernetes.Container) bool { return c.Name == container && c.Init && c.Ended })
}

// deviceKeys are the ways in which ids name a device as a whole.
func deviceKeys(d *attribution.DeviceRef) []kubernetes.Key {
	keys := []kubernetes.Key{{By: kubernetes.ByUUID, Name: d.UUID}, {By: kubernetes.ByIndex, Number: d.Index}}
	if d.PCI != "" {
		slot, _, _ := strings.Cut(d.PCI, ".")
		keys = append(keys, kubernetes.Key{By: kubernetes.ByPCI, Name: d.PCI}, kubernetes.Key{By: kubernetes.BySlot, Name: slot})
	}
	if d.Serial != "" {
		keys = append(keys, kubernetes.Key{By: kubernetes.BySerial, Name: d.Serial})
	}
	if minor, err := strconv.Atoi(d.Minor); err == nil {
		by := kubernetes.ByMinor
		switch d.Vendor { // whose device nodes those are
		case "amd":
			by = kubernetes.ByRender
		case "google":
			by = kubernetes.ByAccel
		}
		keys = append(keys, kubernetes.Key{By: by, Number: minor})
	}
	return keys
}

// partsOf are the device, or those of its partitions that a part names.
func partsOf(d *attribution.DeviceRef, part kubernetes.Part) []attribution.Thing {
	switch part.Of {
	case kubernetes.Whole:
		return []attribution.Thing{{Device: d.UUID}}
	case kubernetes.ByInstance:
		return things(d, strconv.Itoa(part.Instance))
	case kubernetes.ByPlacement:
		if instance, ok := instanceAt(d, part); ok {
			return things(d, instance)
		}
	}
	return nil
}

// instanceAt is the GPU instance that lies where a part says. The driver tells only root where one lies:
// where it does not, the one of a profile is known when there is no other of it.
func instanceAt(d *attribution.DeviceRef, part kubernetes.Part) (instance string, ok bool) {
	plain := strings.NewReplacer(".", "", "-", "", "+", "").Replace // 1g10gb-me of a DRA driver, 1g.10gb+me of NVML
	placed, alike := false, map[string]bool{}
	for i := range d.Partitions {
		p := &d.Partitions[i]
		id, _, _ := strings.Cut(p.Labels.Get("gpu_partition_id"), "/")
		for _, info := range p.Info {
			placed = true
			start, _, _ := strings.Cut(info.Labels.Get("gpu_partition_placement"), ":")
			if start == strconv.Itoa(part.Start) && info.Labels.Get("gpu_partition_profile_id") == strconv.Itoa(part.ProfileID) {
				return id, true
			}
		}
		profile := p.Labels.Get("gpu_partition_profile")
		if first, rest, cut := strings.Cut(profile, "."); cut && strings.HasSuffix(first, "c") { // a part of a GPU instance
			profile = rest
		}
		if part.Profile != "" && plain(profile) == plain(part.Profile) {
			alike[id] = true
		}
	}
	for instance = range alike {
		return instance, !placed && len(alike) == 1
	}
	return "", false
}

// podOf says whose work a process in a pod does.
func podOf(pods cluster, p process.Process) (attribution.Workload, string, bool) {
	pod, container, ok := pods.PodByContainer(p.Container)
	if ok {
		return podWorkload(pod.Namespace, pod.Name, container.Name, pod), "cgroup of the container", true
	}
	pod, known := pods.PodByUID(p.Pod)
	held := pods.Holdings()
	var only *kubernetes.Holding // of the pod's containers the one that holds anything
	for _, h := range held.All() {
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
	case known && held.Reason != kubernetes.Waiting: // else it may still be told which container it is
		return podWorkload(pod.Namespace, pod.Name, "", pod), "cgroup of the pod", true
	}
	return attribution.Workload{}, doctor.NoPod, false
}
