package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
	"github.com/gpumeter/gpumeter/exporter/attribution/process"
	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Every form in which plugins and drivers name a device claims that device, and no other.
func TestEachFormOfID(t *testing.T) {
	for _, c := range []struct {
		held kubernetes.Holding
		want string // things; empty: nothing, and the id is a stray
	}{
		// NVIDIA's plugin
		{given("p/c", "nvidia.com/gpu", uuid0), uuid0},
		{given("p/c", "nvidia.com/gpu", uuid0+"::7"), uuid0},
		{given("p/c", "nvidia.com/gpu.shared", uuid0+"::0"), uuid0},
		{given("p/c", "nvidia.com/mig-1g.10gb", "MIG-"+raw1), "MIG-" + raw1},
		{given("p/c", "nvidia.com/mig-1g.10gb.shared", "MIG-"+raw2+"::3"), "MIG-" + raw2},
		{given("p/c", "nvidia.com/mig-1g.10gb", "MIG-"+uuid1+"/7/0"), "MIG-" + raw1},
		// GKE's: minor numbers, which are not the indexes
		{given("p/c", "nvidia.com/gpu", "nvidia3"), uuid0},
		{given("p/c", "nvidia.com/gpu", "nvidia3/vgpu2"), uuid0},
		{given("p/c", "nvidia.com/gpu", "nvidia1/gi8"), "MIG-" + raw2},
		{given("p/c", "nvidia.com/gpu", "nvidia1/gi7/vgpu0"), "MIG-" + raw1},
		{given("p/c", "nvidia.com/gpu", "nvidia1/gi2"), "MIG-" + raw3 + " MIG-" + raw4}, // both compute instances of it
		// KubeVirt's and HAMi's
		{given("p/c", "nvidia.com/GH100_H100_PCIE", "0000:65:00.0"), uuid0},
		{given("p/c", "nvidia.com/gpu", uuid0+"-4"), uuid0},
		// AMD, Gaudi, TPU
		{given("p/c", "amd.com/gpu", "0000:c5:00.0"), "AMD-0"},
		{given("p/c", "amd.com/cpx_nps4", "0000:C5:00.0"), "AMD-0"},
		{given("p/c", "habana.ai/gaudi", "AN04000116"), "HL-0"},
		{given("p/c", "google.com/tpu", "accel2"), "TPU-0"},
		{given("p/c", "google.com/tpu", "0000:c0:02"), "TPU-0"},
		// DRA
		{claimed("p/c", "gpu.nvidia.com", "gpu-3"), uuid0},
		{claimed("p/c", "gpu.nvidia.com", "gpu-1-mig-19-4-1"), "MIG-" + raw1},
		{claimed("p/c", "gpu.nvidia.com", "gpu-1-mig-1g10gb-19-5"), "MIG-" + raw2},
		{claimed("p/c", "gpu.nvidia.com", "gpu-1-mig-3g40gb-9-0"), "MIG-" + raw3 + " MIG-" + raw4},
		{claimed("p/c", "gpu.amd.com", "gpu-1-129"), "AMD-0"},
		{claimed("p/c", "gaudi.intel.com", "0000-0f-00-0-0x1020"), "HL-0"},
		{claimed("p/c", "tenstorrent.com", "tt-0"), "TT-0"},
		// what is not here, or of no known form
		{given("p/c", "nvidia.com/gpu", "GPU-"+raw2), ""},
		{given("p/c", "nvidia.com/gpu", "nvidia0"), ""},
		{given("p/c", "nvidia.com/gpu", "nvidia1/gi5"), ""},
		{given("p/c", "nvidia.com/gpu", "card<7>"), ""},
		{given("p/c", "nvidia.com/mig-1g.10gb", "MIG-"+raw0), ""},
		{given("p/c", "amd.com/gpu", "amdgpu_xcp_30"), ""},
		{given("p/c", "google.com/tpu", "0"), ""},
		{given("p/c", "aws.amazon.com/neuron", "0"), ""},                       // of another vendor, whose numbers are the same
		{claimed("p/c", "gpu.nvidia.com", "gpu-1-mig-1g10gb-19-0"), ""},        // of another profile
		{claimed("p/c", "gpu.nvidia.com", "gpu-1-mig-1g10gb-19-6"), ""},        // nothing lies there
		{claimed("p/c", "gpu.nvidia.com", "gpu-3-mig-1g10gb-19-4"), ""},        // nor on a device that is not split
		{claimed("p/c", "gpu.nvidia.com", "gpu-vfio-0"), ""},                   // numbers nothing others know
		{claimed("p/c", "gpu.nvidia.com", "gpu-1-mig-1g10gb+me-20-99999"), ""}, // nonsense
	} {
		pods, devices := &fakeCluster{held: []kubernetes.Holding{c.held}}, machine()
		var want []string
		for thing := range strings.FieldsSeq(c.want) {
			want = append(want, "p/c "+thing+"=1")
		}
		if got := told(podClaims(pods, attribution.References(devices))); got != strings.Join(want, "\n") {
			t.Errorf("%s %s\ngot  %s\nwant %s", c.held.Resource, c.held.ID, got, strings.Join(want, "\n"))
		}
		stray := strays(pods, devices, "")
		if (len(stray) == 0) != (c.want != "") {
			t.Errorf("%s %s: strays %+v", c.held.Resource, c.held.ID, stray)
		}
		for _, s := range stray {
			if s.ID != c.held.ID || s.Resource != c.held.Resource || s.Holder != "pod ml/p (c)" {
				t.Errorf("%s %s is shown as %+v", c.held.Resource, c.held.ID, s)
			}
		}
	}
}

// What a virtual machine has is told with the driver that has it, by its address and by its VFIO group.
func TestStraysOfVirtualMachines(t *testing.T) {
	sys := t.TempDir()
	bus, group := filepath.Join(sys, "bus", "pci", "devices"), filepath.Join(sys, "kernel", "iommu_groups", "42", "devices", "0000:d6:00.0")
	for _, dir := range []string{filepath.Join(bus, "0000:d5:00.0"), filepath.Join(bus, "0000:d6:00.0"), filepath.Join(bus, "0000:d7:00.0"), group} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for address, driver := range map[string]string{"0000:d5:00.0": "nvgrace_gpu_vfio_pci", "0000:d6:00.0": "vfio-pci", "0000:d7:00.0": "nvidia"} {
		if err := os.Symlink("../drivers/"+driver, filepath.Join(bus, address, "driver")); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]string{"0000:d5:00.0": "nvgrace_gpu_vfio_pci", "42": "vfio-pci", "0000:d7:00.0": "", "0000:d8:00.0": "", "43": ""} {
		pods := &fakeCluster{held: []kubernetes.Holding{given("p/c", "nvidia.com/GH100_H100_PCIE", id)}}
		if got := strays(pods, machine(), sys); len(got) != 1 || got[0].Driver != want {
			t.Errorf("%s: %+v, want a stray that %q has", id, got, want)
		}
	}
	tpu := &fakeCluster{held: []kubernetes.Holding{given("p/c", "google.com/tpu", "42")}}
	if got := strays(tpu, nil, sys); len(got) != 1 || got[0].Driver != "" {
		t.Errorf("a TPU: %+v", got)
	}
}

// What is no accelerator's is no stray: a network card, a disk.
func TestNoAccelerator(t *testing.T) {
	pods := &fakeCluster{held: []kubernetes.Holding{given("p/c", "rdma/hca", "0"), given("p/c", "devices.kubevirt.io/kvm", "kvm17")}}
	if got, stray := podClaims(pods, attribution.References(machine())), strays(pods, machine(), ""); len(got) != 0 || len(stray) != 0 {
		t.Errorf("claims %v, strays %v", got, stray)
	}
}

// A driver that does not tell where instances lie leaves a DRA device to its profile, if there is one of it.
func TestPlacementNotTold(t *testing.T) {
	devices := machine()
	devices[1].Read.Partitions = []telemetry.Part[telemetry.Partition]{
		partition("MIG-"+raw1, "1g.10gb", "7/0", "", 0), partition("MIG-"+raw2, "1g.10gb+me", "8/0", "", 0),
		partition("MIG-"+raw3, "1c.3g.40gb", "2/0", "", 0), partition("MIG-"+raw4, "2c.3g.40gb", "2/1", "", 0),
	}
	twice := machine()
	twice[1].Read.Partitions = []telemetry.Part[telemetry.Partition]{partition("MIG-"+raw1, "1g.10gb", "7/0", "", 0), partition("MIG-"+raw2, "1g.10gb", "8/0", "", 0)}
	for device, want := range map[string]string{
		"gpu-1-mig-1g10gb-19-4":    "p/c MIG-" + raw1 + "=1",
		"gpu-1-mig-1g10gb-me-20-0": "p/c MIG-" + raw2 + "=1",
		"gpu-1-mig-3g40gb-9-0":     "p/c MIG-" + raw3 + "=1\np/c MIG-" + raw4 + "=1",
		"gpu-1-mig-19-4-1":         "", // it names no profile
		"gpu-1-mig-7g80gb-0-0":     "",
	} {
		pods := &fakeCluster{held: []kubernetes.Holding{claimed("p/c", "gpu.nvidia.com", device)}}
		if got := told(podClaims(pods, attribution.References(devices))); got != want {
			t.Errorf("%s: got %q, want %q", device, got, want)
		}
		if got := told(podClaims(pods, attribution.References(twice))); got != "" {
			t.Errorf("%s: got %q of two that are alike", device, got)
		}
	}
}

func TestPodClaims(t *testing.T) {
	replica := func(who, id string, of int) kubernetes.Holding {
		h := given(who, "nvidia.com/gpu", id)
		h.Replicas = of
		return h
	}
	monitor := given("m/agent", "nvidia.com/gpu", uuid0)
	monitor.Ref.Monitor = true
	for name, c := range map[string]struct {
		held []kubernetes.Holding
		pods []kubernetes.Pod
		want string
	}{
		"nobody holds anything": {nil, nil, ""},
		"a share of four": {[]kubernetes.Holding{replica("a/c", uuid0+"::0", 4), replica("b/c", uuid0+"::1", 4)}, nil,
			"a/c " + uuid0 + "=0.25\nb/c " + uuid0 + "=0.25"},
		"two shares of four": {[]kubernetes.Holding{replica("a/c", uuid0+"::0", 4), replica("a/c", uuid0+"::1", 4)}, nil,
			"a/c " + uuid0 + "=0.25\na/c " + uuid0 + "=0.25"},
		"two containers of a pod": {[]kubernetes.Holding{replica("a/c", uuid0+"::0", 2), replica("a/d", uuid0+"::1", 2)}, nil,
			"a/c " + uuid0 + "=0.5\na/d " + uuid0 + "=0.5"},
		"held to be looked at": {[]kubernetes.Holding{monitor}, nil, ""},
		"by an init container that is done": {
			[]kubernetes.Holding{given("a/fetch", "nvidia.com/gpu", uuid0), given("a/main", "nvidia.com/gpu", uuid0)},
			[]kubernetes.Pod{{Namespace: "ml", Name: "a", Containers: []kubernetes.Container{{Name: "fetch", Init: true, Ended: true}, {Name: "main"}}}},
			"a/main " + uuid0 + "=1"},
		"by an init container that runs": {
			[]kubernetes.Holding{given("a/fetch", "nvidia.com/gpu", uuid0)},
			[]kubernetes.Pod{{Namespace: "ml", Name: "a", Containers: []kubernetes.Container{{Name: "fetch", Init: true}, {Name: "main"}}}},
			"a/fetch " + uuid0 + "=1"},
		"by a container that has ended beside one that runs": { // the kubelet gives it to nobody else before the pod's end
			[]kubernetes.Holding{given("a/main", "nvidia.com/gpu", uuid0)},
			[]kubernetes.Pod{{Namespace: "ml", Name: "a", Containers: []kubernetes.Container{{Name: "main", Ended: true}, {Name: "log"}}}},
			"a/main " + uuid0 + "=1"},
	} {
		if got := told(podClaims(&fakeCluster{held: c.held, pods: c.pods}, attribution.References(machine()))); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// A claim tells all that is known of the pod.
func TestPodIsDescribed(t *testing.T) {
	labels := metric.NewLabels(metric.Label{Name: "k8s_pod_label_team", Value: "a"})
	pods := &fakeCluster{
		by:   kubernetes.APIServer,
		held: []kubernetes.Holding{given("web-7c9f8b5d4-x2x4z/main", "nvidia.com/gpu", uuid0)},
		pods: []kubernetes.Pod{{
			Namespace: "ml", Name: "web-7c9f8b5d4-x2x4z", Shown: labels, Workload: kubernetes.Owner{Kind: "Deployment", Name: "web"},
			Owners:     []kubernetes.Owner{{Kind: "ReplicaSet", Name: "web-7c9f8b5d4"}, {Kind: "Deployment", Name: "web"}},
			Containers: []kubernetes.Container{{Name: "other", Image: "no"}, {Name: "main", Image: "img/main:1"}},
		}},
	}
	want := attribution.Claim{
		Thing: attribution.Thing{Device: uuid0}, Share: 1, How: "pod resources",
		Workload: attribution.Workload{Type: telemetry.WorkloadTypeKubernetes, Namespace: "ml", Pod: "web-7c9f8b5d4-x2x4z", Container: "main", Kind: "Deployment", Name: "web"},
		Detail:   attribution.Detail{Chain: "ReplicaSet/web-7c9f8b5d4, Deployment/web", Image: "img/main:1", Shown: labels},
	}
	if got := podClaims(pods, attribution.References(machine())); len(got) != 1 || got[0] != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// The labels of a workload wait for whoever tells of pods as long as nobody has, and somebody may.
func TestPodIsAwaited(t *testing.T) {
	held := []kubernetes.Holding{given("p/c", "nvidia.com/gpu", uuid0)}
	for name, c := range map[string]struct {
		pods fakeCluster
		want bool
	}{
		"nobody was asked yet":          {fakeCluster{is: kubernetes.Health{Reason: kubernetes.Waiting}}, true},
		"the server is not back":        {fakeCluster{is: kubernetes.Health{Reason: kubernetes.Refused}}, true},
		"nobody is to be asked":         {fakeCluster{is: kubernetes.Health{Reason: kubernetes.Unset}}, false},
		"we may not ask":                {fakeCluster{is: kubernetes.Health{Reason: kubernetes.Denied}}, false},
		"it was told of others":         {fakeCluster{by: kubernetes.APIServer}, false},
		"it was told, and is no longer": {fakeCluster{by: kubernetes.APIServer, is: kubernetes.Health{Reason: kubernetes.Refused}}, false},
		"it is known already":           {fakeCluster{is: kubernetes.Health{Reason: kubernetes.Waiting}, pods: []kubernetes.Pod{{Namespace: "ml", Name: "p"}}}, false},
	} {
		c.pods.held = held
		if got := podClaims(&c.pods, attribution.References(machine())); len(got) != 1 || got[0].Awaited != c.want {
			t.Errorf("%s: %+v, want awaited: %v", name, got, c.want)
		}
	}
}

// Whose work a process in a pod does is known by its container, or by its pod and what that holds.
func TestPodOfProcess(t *testing.T) {
	cid, uid := strings.Repeat("a", 64), raw0
	web := kubernetes.Pod{Namespace: "ml", Name: "web", UID: uid, Workload: kubernetes.Owner{Kind: "Pod", Name: "web"}, Containers: []kubernetes.Container{{Name: "main", ID: cid}}}
	byUID := func(who string) kubernetes.Holding {
		h := given(who, "nvidia.com/gpu", uuid0)
		h.UID = uid
		return h
	}
	monitor := byUID("web/agent")
	monitor.Ref.Monitor = true
	for name, c := range map[string]struct {
		cluster fakeCluster
		place   process.Place
		want    string // pod/container of kind
		ok      bool
	}{
		"the container":                   {fakeCluster{pods: []kubernetes.Pod{web}}, process.Place{Pod: uid, Container: cid}, "web/main of Pod", true},
		"the pod, of which nothing holds": {fakeCluster{pods: []kubernetes.Pod{web}}, process.Place{Pod: uid, Container: "b"}, "web/ of Pod", true},
		"nobody has told yet what holds":  {fakeCluster{pods: []kubernetes.Pod{web}, waiting: true}, process.Place{Pod: uid, Container: "b"}, "/ of ", false},
		"nor what a known container does": {fakeCluster{pods: []kubernetes.Pod{web}, waiting: true}, process.Place{Pod: uid, Container: cid}, "web/main of Pod", true},
		"the one container that holds":    {fakeCluster{held: []kubernetes.Holding{byUID("web/main")}}, process.Place{Pod: uid}, "web/main of ", true},
		"the one that holds, by its name": {fakeCluster{pods: []kubernetes.Pod{web}, held: []kubernetes.Holding{given("web/side", "nvidia.com/gpu", uuid0)}}, process.Place{Pod: uid}, "web/side of Pod", true},
		"one of two that hold":            {fakeCluster{held: []kubernetes.Holding{byUID("web/main"), byUID("web/side")}}, process.Place{Pod: uid}, "web/ of ", true},
		"beside one that only looks":      {fakeCluster{held: []kubernetes.Holding{byUID("web/main"), monitor}}, process.Place{Pod: uid}, "web/main of ", true},
		"a pod nobody has told of":        {fakeCluster{held: []kubernetes.Holding{byUID("web/main")}}, process.Place{Pod: raw1}, "/ of ", false},
	} {
		got, how, ok := podOf(&c.cluster, process.Process{Place: c.place})
		if text := got.Pod + "/" + got.Container + " of " + got.Kind; text != c.want || ok != c.ok || how == "" {
			t.Errorf("%s: got %s, %v, %q; want %s, %v", name, text, ok, how, c.want, c.ok)
		}
	}
}

// A machine is part of a cluster when it has a kubelet, or somebody says so; it may have one later. What
// makes no sense is refused all the same.
func TestMembership(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, k := range []config.Kubernetes{{Node: "no name"}, {PodLabels: []string{"a b"}}, {PodAnnotations: []string{"/"}}} {
		k.KubeletDir = t.TempDir()
		if _, err := newMembership(k, log); err == nil {
			t.Errorf("%+v was let through", k)
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	m, err := newMembership(config.Kubernetes{KubeletDir: t.TempDir(), Node: "node-1"}, log)
	if err != nil || !m.here() {
		t.Errorf("with a name: %v", err)
	}
	dir := t.TempDir()
	if m, err = newMembership(config.Kubernetes{KubeletDir: dir}, log); err != nil || m.here() {
		t.Errorf("without a kubelet: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "pod-resources"), 0o700); err != nil {
		t.Fatal(err)
	}
	if m.here() || !m.look() || !m.here() {
		t.Error("a kubelet that comes later is not seen")
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	if m, err = newMembership(config.Kubernetes{KubeletDir: t.TempDir()}, log); err != nil || !m.here() {
		t.Errorf("in a pod: %v", err)
	}
}
