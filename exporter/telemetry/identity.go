package telemetry

import (
	"strings"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// Identity says which device a reading is of. A source fills what its driver gives and leaves the
// rest empty; it is read again only when devices are listed again.
type Identity struct {
	UUID   string // the vendor's own, as its tools print it: GPU-6b1f…
	Index  int    // the driver's number, kept for a UUID while the process lives
	Vendor string // nvidia, amd, intel, tenstorrent, google
	Model  string // as the driver names it

	Slices            string // compute slices a device can be cut into, where it can
	Minor             string // of the device node: 0 of /dev/nvidia0, 128 of /dev/dri/renderD128
	PCI               string // bus address, lower case, 4-digit domain: 0000:83:00.0
	Serial            string
	PartNumber        string
	Architecture      string
	ComputeCapability string // CUDA's, such as 9.0
	DriverVersion     string
	CUDAVersion       string // the newest CUDA the driver serves
	FirmwareVersion   string // VBIOS or the vendor's firmware bundle
}

// NormalizePCI turns the forms drivers print (00000000:83:00.0, 0000:83:00.0, upper-case digits)
// into the one the kernel uses.
func NormalizePCI(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	for strings.IndexByte(s, ':') > 4 && s[0] == '0' { // the domain; behind a bridge of VMD it has 5 digits
		s = s[1:]
	}
	return s
}

// Labels are the labels every series of the device carries.
func (id *Identity) Labels() *metric.Labels {
	return DeviceAttributes{UUID: id.UUID, Index: int64(id.Index), Vendor: id.Vendor, Model: id.Model}.Labels()
}

// Info are the labels of gpu.info beside those every series carries.
func (id *Identity) Info() *metric.Labels {
	return PresenceInfoAttributes{
		PCIAddress: id.PCI, Serial: id.Serial, PartNumber: id.PartNumber,
		Architecture: id.Architecture, ComputeCapability: id.ComputeCapability,
		DriverVersion: id.DriverVersion, CUDAVersion: id.CUDAVersion, FirmwareVersion: id.FirmwareVersion,
	}.Labels()
}
