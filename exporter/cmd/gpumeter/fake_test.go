package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// fakeCluster knows what the test says.
type fakeCluster struct {
	by   kubernetes.Source
	is   kubernetes.Health
	held []kubernetes.Holding
	pods []kubernetes.Pod

	waiting bool // the kubelet has not answered yet
}

func (f *fakeCluster) Holdings() *kubernetes.Holdings {
	h := kubernetes.NewHoldings(f.held...)
	if f.waiting {
		h.Reason = kubernetes.Waiting
	}
	return h
}

func (f *fakeCluster) Pods() (kubernetes.Source, int, kubernetes.Health) {
	return f.by, len(f.pods), f.is
}

func (f *fakeCluster) find(is func(kubernetes.Pod) bool) (kubernetes.Pod, bool) {
	if i := slices.IndexFunc(f.pods, is); i >= 0 {
		return f.pods[i], true
	}
	return kubernetes.Pod{}, false
}

func (f *fakeCluster) Holder(h *kubernetes.Holding) (kubernetes.Pod, bool) {
	return f.find(func(p kubernetes.Pod) bool { return p.Namespace == h.Namespace && p.Name == h.Pod })
}

func (f *fakeCluster) PodByUID(uid string) (kubernetes.Pod, bool) {
	return f.find(func(p kubernetes.Pod) bool { return p.UID == uid })
}

func (f *fakeCluster) PodByContainer(id string) (found kubernetes.Pod, in kubernetes.Container, ok bool) {
	found, ok = f.find(func(p kubernetes.Pod) bool {
		at := slices.IndexFunc(p.Containers, func(c kubernetes.Container) bool { return c.ID == id })
		if at >= 0 {
			in = p.Containers[at]
		}
		return at >= 0
	})
	return found, in, ok
}

// given is what a device plugin gave a container of a pod, both named a/b.
func given(who, resource, id string) kubernetes.Holding {
	pod, container, _ := strings.Cut(who, "/")
	return kubernetes.Holding{Namespace: "ml", Pod: pod, Container: container, Resource: resource, ID: id, Ref: kubernetes.Parse(resource, id)}
}

// claimed is what a DRA driver gave.
func claimed(who, driver, device string) kubernetes.Holding {
	h := given(who, driver, device)
	h.Ref, h.Claim = kubernetes.ParseDRA(driver, device), kubernetes.Claim{Namespace: "ml", Name: "c", Driver: driver, Pool: "node-1", Device: device}
	return h
}

// machine has devices of several vendors; the second of NVIDIA's is split.
func machine() []snapshot.Device {
	device := func(vendor, uuid string, index int, more telemetry.Identity) snapshot.Device {
		more.Vendor, more.UUID, more.Index = vendor, uuid, index
		return snapshot.Device{Identity: &more, Labels: more.Labels(), Owned: more.Labels()}
	}
	all := []snapshot.Device{
		device("nvidia", uuid0, 0, telemetry.Identity{Minor: "3", PCI: "0000:65:00.0"}),
		device("nvidia", uuid1, 1, telemetry.Identity{Minor: "1", PCI: "0000:66:00.0"}),
		device("amd", "AMD-0", 0, telemetry.Identity{Minor: "129", PCI: "0000:c5:00.0"}),
		device("intel", "HL-0", 0, telemetry.Identity{Serial: "AN04000116", PCI: "0000:0f:00.0"}),
		device("tenstorrent", "TT-0", 0, telemetry.Identity{}),
		device("google", "TPU-0", 2, telemetry.Identity{Minor: "2", PCI: "0000:c0:02.0"}),
	}
	all[1].Read.Partitions = []telemetry.Part[telemetry.Partition]{
		partition("MIG-"+raw1, "1g.10gb", "7/0", "4:1", 19), partition("MIG-"+raw2, "1g.10gb", "8/0", "5:1", 19),
		partition("", "3g.40gb", "2", "0:4", 9), partition("MIG-"+raw3, "1c.3g.40gb", "2/0", "", 0), partition("MIG-"+raw4, "2c.3g.40gb", "2/1", "", 0),
	}
	return all
}

const (
	raw0  = "00000000-0000-4000-8000-000000000000"
	raw1  = "11111111-1111-5111-8111-111111111111"
	raw2  = "22222222-2222-5222-8222-222222222222"
	raw3  = "33333333-3333-5333-8333-333333333333"
	raw4  = "44444444-4444-5444-8444-444444444444"
	uuid0 = "GPU-" + raw0
	uuid1 = "GPU-" + raw1
)

// partition is a MIG instance; without a place it is not told.
func partition(uuid, profile, id, place string, profileID int64) telemetry.Part[telemetry.Partition] {
	p := telemetry.Part[telemetry.Partition]{Labels: telemetry.PartitionAttributes{PartitionUUID: uuid, PartitionID: id, PartitionProfile: profile}.Labels()}
	if place != "" {
		p.Read.Partitions.Info = append(p.Read.Partitions.Info, keyed(telemetry.PartitionsInfoAttributes{PartitionPlacement: place, PartitionProfileID: profileID}))
	}
	return p
}

// told are claims as pod/container thing=share, by order.
func told(claims []attribution.Claim) string {
	var out []string
	for _, c := range claims {
		thing := c.Device
		if c.Thing.Partition != "" {
			thing = c.Thing.Partition
		}
		out = append(out, fmt.Sprintf("%s/%s %s=%.3g", c.Pod, c.Container, thing, c.Share))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// keyed is the 1 of an info.
func keyed(a interface{ Labels() *metric.Labels }) metric.Keyed {
	k := metric.Keyed{Labels: a.Labels()}
	k.Value.Set(1)
	return k
}
