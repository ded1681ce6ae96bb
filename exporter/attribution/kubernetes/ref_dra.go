package kubernetes

import (
	"strings"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// ParseDRA says what a device of a DRA driver is, by its name alone: pool and share do not tell. The
// forms are those of the drivers of NVIDIA, AMD, Intel and Tenstorrent; what is of none of them comes
// back ByNothing. What a ResourceSlice says of the device counts for more.
func ParseDRA(driver, device string) Ref {
	r := Ref{Vendor: draVendor(driver)}
	switch driver {
	case "gpu.nvidia.com":
		r.draNVIDIA(device)
	case "gpu.amd.com": // gpu-<card>-<render minor>, also of a partition
		if rest, ok := strings.CutPrefix(device, "gpu-"); ok {
			card, render, _ := strings.Cut(rest, "-")
			_, isCard := number(card)
			if n, isRender := number(render); isCard && isRender {
				r.Key = Key{By: ByRender, Number: n}
			}
		}
	case "gaudi.intel.com", "gpu.intel.com": // a bus address with dashes, and the PCI device id: 0000-0f-00-0-0x1020
		if where, _, ok := strings.Cut(device, "-0x"); ok && strings.Count(where, "-") == 3 {
			domain, rest, _ := strings.Cut(where, "-")
			bus, rest, _ := strings.Cut(rest, "-")
			slot, function, _ := strings.Cut(rest, "-")
			if s := domain + ":" + bus + ":" + slot + "." + function; address(s) {
				r.Key = Key{By: ByPCI, Name: telemetry.NormalizePCI(s)}
			}
		}
	case "tenstorrent.com":
		if n, ok := after(device, "tt-"); ok {
			r.Key = Key{By: ByIndex, Number: n}
		}
	}
	return r
}

// draNVIDIA reads gpu-<minor> and the two forms a MIG instance had. Before 25.3.0-rc.5 the number was
// the index, which the name does not tell; gpu-vfio-<n> numbers nothing others know.
func (r *Ref) draNVIDIA(device string) {
	rest, ok := strings.CutPrefix(device, "gpu-")
	if !ok {
		return
	}
	minor, part, isPart := strings.Cut(rest, "-mig-")
	m, ok := number(minor)
	if !ok {
		return
	}
	key := Key{By: ByMinor, Number: m}
	if !isPart {
		r.Key = key
		return
	}
	head, third, ok := cutLast(part)
	first, second, ok2 := cutLast(head)
	c, isC := number(third)
	b, isB := number(second)
	if !ok || !ok2 || !isB || !isC {
		return
	}
	r.Key = key
	if a, old := number(first); old { // up to 25.8: <profile id>-<start>-<size>
		r.Part = Part{Of: ByPlacement, ProfileID: a, Start: b, Size: c}
	} else { // later: <profile>-<profile id>-<start>; the profile may hold dashes
		r.Part = Part{Of: ByPlacement, Profile: first, ProfileID: b, Start: c}
	}
}

// cutLast splits at the last dash.
func cutLast(s string) (before, after string, found bool) {
	at := strings.LastIndexByte(s, '-')
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+1:], true
}

func draVendor(driver string) string {
	switch driver {
	case "gpu.nvidia.com", "compute-domain.nvidia.com":
		return "nvidia"
	case "gpu.amd.com":
		return "amd"
	case "gaudi.intel.com", "gpu.intel.com":
		return "intel"
	case "tenstorrent.com":
		return "tenstorrent"
	}
	return ""
}

// fromCDI takes the UUID out of the name of a CDI device, vendor.com/class=GPU-…, where the name the
// driver gave the device tells nothing.
func (r *Ref) fromCDI(name string) {
	_, device, ok := strings.Cut(name, "=")
	if !ok || r.By != ByNothing {
		return
	}
	if uuid := (Ref{}); uuid.nvidia(device) {
		r.Key, r.Vendor, r.Part = uuid.Key, uuid.Vendor, uuid.Part
	}
}

// Attributes are what a ResourceSlice says of a device that others also know it by.
type Attributes struct {
	UUID    string // GPU-… or MIG-…
	Parent  string // of a MIG instance, GPU-…
	Profile string // of a MIG instance, 1g.10gb
	PCI     string // bus address
}

// told adds what a ResourceSlice says. A UUID counts for more than any name of a device, and a bus
// address for more than none.
func (r Ref) told(a Attributes) Ref {
	r.Parent, r.PCI = a.Parent, a.PCI
	if uuid := (Ref{}); uuid.nvidia(a.UUID) {
		r.Key, r.Vendor = uuid.Key, uuid.Vendor
		if r.By == ByMIG {
			r.Part = Part{}
		}
	} else if uuid.nvidia(a.Parent) && r.Part.Of != Whole { // a MIG instance not made yet has no UUID
		r.Key = uuid.Key
	} else if a.PCI != "" && (r.By == ByNothing || r.By == ByIndex) {
		r.Key = Key{By: ByPCI, Name: a.PCI}
	}
	if a.Profile != "" {
		r.Part.Profile = a.Profile
	}
	return r
}
