package kubernetes

import (
	"fmt"
	"strings"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// By says what a Key names a device by.
type By uint8

// What ids name devices by. Those marked with Name have it in Key.Name, the others in Key.Number.
const (
	ByNothing By = iota // an id of no known form, which is kept raw
	ByUUID              // Name: the device's UUID, as the vendor's tools print it: GPU-…
	ByMIG               // Name: the UUID of a MIG instance: MIG-…
	ByMinor             // minor number of the device node: 0 of /dev/nvidia0
	ByPCI               // Name: bus address as the kernel writes it: 0000:83:00.0
	BySlot              // Name: bus address without the function: 0000:c0:02
	BySerial            // Name: serial number of the board
	ByCard              // DRM card: 0 of /dev/dri/card0
	ByRender            // minor number of the DRM render node: 128 of /dev/dri/renderD128
	ByXCP               // partition of an AMD device: 30 of /sys/devices/platform/amdgpu_xcp_30
	ByIndex             // the driver's number of the device
	ByCore              // the driver's number of a core, of which a device has several: AWS NeuronCore
	ByAccel             // /dev/accel0
	ByGroup             // VFIO or IOMMU group: 0 of /dev/vfio/0
	ByMdev              // Name: UUID of a mediated device, which a virtual machine gets
	ByAll               // all devices of the vendor at once, to look at
)

// String is for people.
func (b By) String() string {
	names := [...]string{
		"nothing known", "UUID", "MIG UUID", "minor number", "PCI address", "PCI slot", "serial number", "DRM card",
		"DRM render node", "partition", "index", "core", "accelerator node", "VFIO group", "mediated device", "all",
	}
	if int(b) < len(names) {
		return names[b]
	}
	return fmt.Sprintf("By(%d)", uint8(b))
}

// Key names a device in one way; whoever knows the devices makes the same Key of one to find who holds it.
type Key struct {
	By     By
	Name   string
	Number int
}

// String is for people: minor number 0, UUID GPU-….
func (k Key) String() string {
	switch {
	case k.Name != "":
		return k.By.String() + " " + k.Name
	case k.By == ByNothing || k.By == ByAll:
		return k.By.String()
	}
	return fmt.Sprintf("%s %d", k.By, k.Number)
}

// Ref is what an id names: a device or a part of one, all of it or a share.
type Ref struct {
	Key
	Vendor string // nvidia, amd, intel, google, aws, tenstorrent; empty where neither resource nor id tells
	Part   Part   // the part of the device Key names; zero: all of it, or Key names the part itself
	// Parent is the UUID of the device a MIG instance is part of, and PCI the bus address of the
	// device, where a ResourceSlice says them. They go beside Key, which is enough to match by.
	Parent, PCI string
	Shared      bool // the id is one of several for the same thing: time slicing, MPS, HAMi, a DRA share
	Replica     int  // which of them, where Shared and the id numbers them
	Monitor     bool // held to be looked at, not to be used: it makes nobody an owner
}

// PartOf says how a Part is named.
type PartOf uint8

// The ways to name a part of a device.
const (
	Whole       PartOf = iota // no part: the device
	ByInstance                // Instance is NVML's id of the GPU instance
	ByPlacement               // ProfileID and Start, which NVML's GPU instances also tell
)

// Part is a MIG instance named by its place in the device Key names.
type Part struct {
	Of        PartOf
	Instance  int    // GPU instance, where ByInstance
	Compute   int    // compute instance within it, plus 1; 0: not told
	ProfileID int    // of the GPU instance profile, where ByPlacement
	Start     int    // first memory slice, where ByPlacement
	Size      int    // memory slices, where the name has them; 0: not told
	Profile   string // such as 1g.10gb; in a DRA name without the dot
}

// whole is the Ref without what tells replicas of the same thing apart.
func (r Ref) whole() Ref {
	r.Replica = 0
	return r
}

// Parse says what a device plugin's id names. The forms are those of the plugins of NVIDIA, GKE,
// KubeVirt, HAMi, AMD, Intel, Google and AWS; what is of none of them comes back ByNothing.
func Parse(resource, id string) Ref {
	domain, name, _ := strings.Cut(resource, "/")
	r := Ref{Vendor: vendor(domain, name), Shared: strings.HasSuffix(name, ".shared"), Monitor: strings.HasSuffix(name, "_monitoring")}
	if r.Monitor && (id == "all" || id == "monitoring") {
		r.By = ByAll
		return r
	}
	if at := strings.LastIndex(id, "::"); at >= 0 { // NVIDIA's plugin, for time slicing and for MPS
		if n, ok := number(id[at+2:]); ok {
			id, r.Shared, r.Replica = id[:at], true, n
		}
	}
	if r.nvidia(id) || r.numbered(id) {
		return r
	}
	switch {
	case domain == "habana.ai":
		r.Key = Key{By: BySerial, Name: id}
	case address(id):
		r.Key = Key{By: ByPCI, Name: telemetry.NormalizePCI(id)}
	case address(id + ".0"):
		r.Key = Key{By: BySlot, Name: telemetry.NormalizePCI(id)}
	case domain == "nvidia.com" && isUUID(id):
		r.Key = Key{By: ByMdev, Name: strings.ToLower(id)}
	default:
		if n, ok := number(id); ok {
			r.Key = bare(domain, name, n)
		}
	}
	return r
}

// vendor is whose devices a resource is of. Intel makes Gaudi.
func vendor(domain, name string) string {
	switch domain {
	case "nvidia.com":
		return "nvidia"
	case "amd.com":
		return "amd"
	case "gpu.intel.com", "habana.ai":
		return "intel"
	case "google.com":
		if name == "tpu" {
			return "google"
		}
	case "aws.amazon.com":
		return "aws"
	case "tenstorrent.com":
		return "tenstorrent"
	}
	return ""
}

// bare is what a number alone names, which only the resource tells: the 0 of an RDMA device is no
// accelerator's.
func bare(domain, name string, n int) Key {
	switch domain {
	case "google.com":
		if name == "tpu" {
			return Key{By: ByGroup, Number: n}
		}
	case "aws.amazon.com":
		switch name {
		case "neuron", "neurondevice":
			return Key{By: ByIndex, Number: n}
		case "neuroncore":
			return Key{By: ByCore, Number: n}
		}
	case "nvidia.com": // KubeVirt's, whose resource is the product's name
		if name != "gpu" && name != "gpu.shared" && !strings.HasPrefix(name, "mig-") {
			return Key{By: ByGroup, Number: n}
		}
	}
	return Key{}
}
