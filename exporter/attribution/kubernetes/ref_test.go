package kubernetes

import (
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

const (
	id1 = "5b3c1a9e-7d3b-4c58-9f5f-0a1b2c3d4e5f"
	id2 = "3f1c0a6e-2b52-5d6c-8a3b-1e2f3a4b5c6d"
)

// refOf shortens the tables.
func refOf(vendor string, by By, of any) Ref {
	r := Ref{Vendor: vendor, Key: Key{By: by}}
	switch x := of.(type) {
	case string:
		r.Name = x
	case int:
		r.Number = x
	}
	return r
}

func (r Ref) replica(n int) Ref { r.Shared, r.Replica = true, n; return r }
func (r Ref) part(p Part) Ref   { r.Part = p; return r }

func TestParse(t *testing.T) {
	monitor, shared := refOf("intel", ByAll, nil), Ref{Vendor: "nvidia", Shared: true}
	monitor.Monitor = true
	sharedBase := refOf("nvidia", ByUUID, "GPU-"+id1)
	sharedBase.Shared = true
	for _, c := range []struct {
		resource, id string
		want         Ref
	}{
		// NVIDIA's plugin
		{"nvidia.com/gpu", "GPU-" + id1, refOf("nvidia", ByUUID, "GPU-"+id1)},
		{"nvidia.com/gpu", "GPU-" + strings.ToUpper(id1), refOf("nvidia", ByUUID, "GPU-"+id1)},
		{"nvidia.com/gpu", "GPU-" + id1 + "::3", refOf("nvidia", ByUUID, "GPU-"+id1).replica(3)},
		{"nvidia.com/gpu.shared", "GPU-" + id1 + "::0", refOf("nvidia", ByUUID, "GPU-"+id1).replica(0)},
		{"nvidia.com/gpu.shared", "GPU-" + id1, sharedBase},
		{"nvidia.com/mig-1g.10gb", "MIG-" + id2, refOf("nvidia", ByMIG, "MIG-"+id2)},
		{"nvidia.com/mig-1g.10gb.me", "MIG-" + id2, refOf("nvidia", ByMIG, "MIG-"+id2)},
		{"nvidia.com/mig-1g.10gb.shared", "MIG-" + id2 + "::11", refOf("nvidia", ByMIG, "MIG-"+id2).replica(11)},
		{"nvidia.com/gpu", "MIG-" + id2, refOf("nvidia", ByMIG, "MIG-"+id2)},
		{"nvidia.com/mig-1g.5gb", "MIG-GPU-" + id1 + "/7/0", refOf("nvidia", ByUUID, "GPU-"+id1).part(Part{Of: ByInstance, Instance: 7, Compute: 1})},
		{"example.com/renamed", "GPU-" + id1, refOf("nvidia", ByUUID, "GPU-"+id1)},
		// GKE's
		{"nvidia.com/gpu", "nvidia0", refOf("nvidia", ByMinor, 0)},
		{"nvidia.com/gpu", "nvidia15", refOf("nvidia", ByMinor, 15)},
		{"nvidia.com/gpu", "nvidia0/gi1", refOf("nvidia", ByMinor, 0).part(Part{Of: ByInstance, Instance: 1})},
		{"nvidia.com/gpu", "nvidia0/vgpu3", refOf("nvidia", ByMinor, 0).replica(3)},
		{"nvidia.com/gpu", "nvidia2/gi0/vgpu0", refOf("nvidia", ByMinor, 2).part(Part{Of: ByInstance}).replica(0)},
		// KubeVirt's
		{"nvidia.com/GH100_H100_PCIE", "0000:65:00.0", refOf("nvidia", ByPCI, "0000:65:00.0")},
		{"nvidia.com/NVIDIA_A10-12Q", id1, refOf("nvidia", ByMdev, id1)},
		{"nvidia.com/GH100_H100_PCIE", "61", refOf("nvidia", ByGroup, 61)},
		// HAMi's
		{"nvidia.com/gpu", "GPU-" + id1 + "-4", refOf("nvidia", ByUUID, "GPU-"+id1).replica(4)},
		{"volcano.sh/vgpu-number", "GPU-" + id1 + "-0", refOf("nvidia", ByUUID, "GPU-"+id1).replica(0)},
		// AMD's
		{"amd.com/gpu", "0000:19:00.0", refOf("amd", ByPCI, "0000:19:00.0")},
		{"amd.com/cpx_nps4", "0000:C5:00.0", refOf("amd", ByPCI, "0000:c5:00.0")},
		{"amd.com/cpx_nps4", "amdgpu_xcp_30", refOf("amd", ByXCP, 30)},
		// Intel's
		{"habana.ai/gaudi", "AN04000116", refOf("intel", BySerial, "AN04000116")},
		{"gpu.intel.com/i915", "card0-3", refOf("intel", ByCard, 0).replica(3)},
		{"gpu.intel.com/xe", "card1-0", refOf("intel", ByCard, 1).replica(0)},
		{"gpu.intel.com/i915_monitoring", "all", monitor},
		{"gpu.intel.com/xe_monitoring", "all", monitor},
		// Google's
		{"google.com/tpu", "accel3", refOf("google", ByAccel, 3)},
		{"google.com/tpu", "0", refOf("google", ByGroup, 0)},
		{"google.com/tpu", "0000:c0:02", refOf("google", BySlot, "0000:c0:02")},
		// AWS'
		{"aws.amazon.com/neuron", "0", refOf("aws", ByIndex, 0)},
		{"aws.amazon.com/neurondevice", "11", refOf("aws", ByIndex, 11)},
		{"aws.amazon.com/neuroncore", "1", refOf("aws", ByCore, 1)},
		// addresses, as NVML and a VMD bridge write them
		{"amd.com/gpu", "00000000:19:00.0", refOf("amd", ByPCI, "0000:19:00.0")},
		{"amd.com/gpu", "10000:01:00.0", refOf("amd", ByPCI, "10000:01:00.0")},
		{"intel.com/sriov", "0000:19:00.2", refOf("", ByPCI, "0000:19:00.2")},
		// what names no device is not taken for one
		{"rdma/hca", "0", Ref{}},
		{"devices.kubevirt.io/kvm", "kvm17", Ref{}},
		{"nvidia.com/gpu", "0", Ref{Vendor: "nvidia"}},
		{"nvidia.com/gpu.shared", "7", shared},
		{"nvidia.com/gpu", "GPU-0", Ref{Vendor: "nvidia"}},
		{"nvidia.com/gpu", "GPU-" + id1 + "-", Ref{Vendor: "nvidia"}},
		{"nvidia.com/gpu", "GPU-" + id1 + "x4", Ref{Vendor: "nvidia"}},
		{"nvidia.com/gpu", "GPU-" + id1[:35] + "g", Ref{Vendor: "nvidia"}},
		{"nvidia.com/gpu", "MIG-GPU-" + id1, Ref{Vendor: "nvidia"}},
		{"nvidia.com/gpu", "MIG-GPU-" + id1 + "/1", Ref{Vendor: "nvidia"}},
		{"nvidia.com/gpu", "MIG-GPU-" + id1 + "1/2", Ref{Vendor: "nvidia"}},
		{"nvidia.com/gpu", "nvidia", Ref{Vendor: "nvidia"}},
		{"nvidia.com/gpu", "nvidia00", Ref{Vendor: "nvidia"}},
		{"nvidia.com/gpu", "nvidia0/vgpu1/gi0", Ref{Vendor: "nvidia"}},
		{"nvidia.com/gpu", "nvidia0/gi0/gi1", Ref{Vendor: "nvidia"}},
		{"nvidia.com/gpu", "nvidia99999999999999999999", Ref{Vendor: "nvidia"}},
		{"nvidia.com/gpu", "amdgpu_xcp_3/1", Ref{Vendor: "nvidia"}},
		{"amd.com/gpu", "0000:19:00.8", Ref{Vendor: "amd"}},
		{"amd.com/gpu", "000:19:00.0", Ref{Vendor: "amd"}},
		{"amd.com/gpu", "000000000:19:00.0", Ref{Vendor: "amd"}},
		{"amd.com/gpu", id1, Ref{Vendor: "amd"}},
		{"gpu.intel.com/i915", "card0", Ref{Vendor: "intel"}},
		{"google.com/other", "0", Ref{}},
		{"", "", Ref{}},
		{"nvidia.com/gpu", "::", Ref{Vendor: "nvidia"}},
	} {
		if got := Parse(c.resource, c.id); got != c.want {
			t.Errorf("%s %q\ngot  %+v\nwant %+v", c.resource, c.id, got, c.want)
		}
	}
}

func TestParseDRA(t *testing.T) {
	for _, c := range []struct {
		driver, device string
		want           Ref
	}{
		{"gpu.nvidia.com", "gpu-0", refOf("nvidia", ByMinor, 0)},
		{"gpu.nvidia.com", "gpu-0-mig-19-4-1", refOf("nvidia", ByMinor, 0).part(Part{Of: ByPlacement, ProfileID: 19, Start: 4, Size: 1})},
		{"gpu.nvidia.com", "gpu-3-mig-1g10gb-19-4", refOf("nvidia", ByMinor, 3).part(Part{Of: ByPlacement, Profile: "1g10gb", ProfileID: 19, Start: 4})},
		{"gpu.nvidia.com", "gpu-3-mig-1g10gb-me-20-0", refOf("nvidia", ByMinor, 3).part(Part{Of: ByPlacement, Profile: "1g10gb-me", ProfileID: 20})},
		{"gpu.nvidia.com", "gpu-vfio-0", Ref{Vendor: "nvidia"}},
		{"gpu.nvidia.com", "gpu-0-mig-19", Ref{Vendor: "nvidia"}},
		{"gpu.nvidia.com", "gpu-0-mig-", Ref{Vendor: "nvidia"}},
		{"gpu.nvidia.com", "gpu-", Ref{Vendor: "nvidia"}},
		{"gpu.nvidia.com", "nic-0", Ref{Vendor: "nvidia"}},
		{"compute-domain.nvidia.com", "channel-0", Ref{Vendor: "nvidia"}},
		{"gpu.amd.com", "gpu-1-128", refOf("amd", ByRender, 128)},
		{"gpu.amd.com", "gpu-1", Ref{Vendor: "amd"}},
		{"gpu.amd.com", "gpu-vfio-1", Ref{Vendor: "amd"}},
		{"gaudi.intel.com", "0000-0f-00-0-0x1020", refOf("intel", ByPCI, "0000:0f:00.0")},
		{"gpu.intel.com", "0000-03-00-0-0xe20b", refOf("intel", ByPCI, "0000:03:00.0")},
		{"gpu.intel.com", "0000-03-00-0", Ref{Vendor: "intel"}},
		{"gpu.intel.com", "0000-03-00-0-0-0xe20b", Ref{Vendor: "intel"}},
		{"tenstorrent.com", "tt-0", refOf("tenstorrent", ByIndex, 0)},
		{"example.com", "gpu-0", Ref{}}, // another driver's numbers may mean anything
	} {
		if got := ParseDRA(c.driver, c.device); got != c.want {
			t.Errorf("%s %q\ngot  %+v\nwant %+v", c.driver, c.device, got, c.want)
		}
	}
}

// What a ResourceSlice says of a device counts for more than its name.
func TestTold(t *testing.T) {
	mig := ParseDRA("gpu.nvidia.com", "gpu-0-mig-1g10gb-19-4")
	for name, c := range map[string]struct {
		ref  Ref
		told Attributes
		want Ref
	}{
		"device": {ParseDRA("gpu.nvidia.com", "gpu-0"), Attributes{UUID: "GPU-" + id1, PCI: "0000:19:00.0"},
			Ref{Vendor: "nvidia", Key: Key{By: ByUUID, Name: "GPU-" + id1}, PCI: "0000:19:00.0"}},
		"MIG": {mig, Attributes{UUID: "MIG-" + id2, Parent: "GPU-" + id1, Profile: "1g.10gb"},
			Ref{Vendor: "nvidia", Key: Key{By: ByMIG, Name: "MIG-" + id2}, Parent: "GPU-" + id1, Part: Part{Profile: "1g.10gb"}}},
		"MIG not made yet": {mig, Attributes{Parent: "GPU-" + id1, Profile: "1g.10gb"},
			Ref{Vendor: "nvidia", Key: Key{By: ByUUID, Name: "GPU-" + id1}, Parent: "GPU-" + id1,
				Part: Part{Of: ByPlacement, Profile: "1g.10gb", ProfileID: 19, Start: 4}}},
		"VFIO": {ParseDRA("gpu.nvidia.com", "gpu-vfio-0"), Attributes{PCI: "0000:19:00.0"},
			Ref{Vendor: "nvidia", Key: Key{By: ByPCI, Name: "0000:19:00.0"}, PCI: "0000:19:00.0"}},
		"partition of AMD, whose address is that of the device": {ParseDRA("gpu.amd.com", "gpu-2-129"), Attributes{PCI: "0000:19:00.0"},
			Ref{Vendor: "amd", Key: Key{By: ByRender, Number: 129}, PCI: "0000:19:00.0"}},
		"unknown driver":       {Ref{}, Attributes{PCI: "0000:19:00.0"}, Ref{Key: Key{By: ByPCI, Name: "0000:19:00.0"}, PCI: "0000:19:00.0"}},
		"UUID of another form": {ParseDRA("gpu.amd.com", "gpu-1-128"), Attributes{UUID: "whatever"}, refOf("amd", ByRender, 128)},
		"nothing":              {ParseDRA("gpu.nvidia.com", "gpu-0"), Attributes{}, refOf("nvidia", ByMinor, 0)},
	} {
		if got := c.ref.told(c.told); got != c.want {
			t.Errorf("%s\ngot  %+v\nwant %+v", name, got, c.want)
		}
	}
}

// A CDI name helps where the device's own name does not.
func TestFromCDI(t *testing.T) {
	for name, want := range map[string]Ref{
		"nvidia.com/gpu=GPU-" + id1:          refOf("nvidia", ByUUID, "GPU-"+id1),
		"nvidia.com/gpu=MIG-" + id2:          refOf("nvidia", ByMIG, "MIG-"+id2),
		"nvidia.com/gpu=0":                   {},
		"k8s.gpu.nvidia.com/claim=x-gpu-0":   {},
		"k8s.gpu.nvidia.com/claim=GPU-wrong": {},
		"GPU-" + id1:                         {},
		"":                                   {},
	} {
		var r Ref
		if r.fromCDI(name); r != want {
			t.Errorf("%q: got %+v, want %+v", name, r, want)
		}
	}
	known := ParseDRA("gpu.nvidia.com", "gpu-0")
	if known.fromCDI("nvidia.com/gpu=GPU-" + id1); known.By != ByMinor {
		t.Errorf("a CDI name replaced what the driver's own name said: %+v", known)
	}
}

func TestKeyString(t *testing.T) {
	for want, k := range map[string]Key{
		"minor number 0":           {By: ByMinor},
		"PCI address 0000:19:00.0": {By: ByPCI, Name: "0000:19:00.0"},
		"nothing known":            {},
		"By(99) 3":                 {By: 99, Number: 3},
	} {
		if got := k.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if ByAll.String() != "all" {
		t.Errorf("the names of By and its constants are not as many: %s", ByAll)
	}
}

// Whatever an id holds, it is read without a panic, names what it names in full or nothing, and does
// not name two things.
func FuzzParse(f *testing.F) {
	for _, id := range []string{"GPU-" + id1 + "::3", "MIG-GPU-" + id1 + "/7/0", "nvidia0/gi1/vgpu0", "card0-1", "0000:19:00.0", "amdgpu_xcp_3", "gpu-0-mig-19-4-1", "0000-0f-00-0-0x1020"} {
		f.Add("nvidia.com/gpu", id)
		f.Add("gpu.nvidia.com", id)
	}
	f.Fuzz(func(t *testing.T, resource, id string) {
		for _, r := range []Ref{Parse(resource, id), ParseDRA(resource, id), ParseDRA("gpu.intel.com", id), Parse("google.com/tpu", id)} {
			switch r.By {
			case ByUUID, ByMIG:
				if len(r.Name) != 40 {
					t.Errorf("%s %q: %+v", resource, id, r)
				}
			case ByPCI:
				if !address(r.Name) || r.Name != telemetry.NormalizePCI(r.Name) {
					t.Errorf("%s %q: %+v", resource, id, r)
				}
			case BySerial, BySlot, ByMdev:
			default:
				if r.Name != "" {
					t.Errorf("%s %q: %+v", resource, id, r)
				}
			}
			if r.Number < 0 || r.Number > 999_999 || r.Name != "" && r.Number != 0 || r.By == ByNothing && r.Number != 0 {
				t.Errorf("%s %q: %+v", resource, id, r)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Parse("nvidia.com/gpu", "GPU-"+id1+"::3")
	}
}
