//go:build cgo

package nvml

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// architectures are the words for nvmlDeviceArchitecture_t.
var architectures = map[nvml.DeviceArchitecture]string{
	nvml.DEVICE_ARCH_KEPLER:    "kepler",
	nvml.DEVICE_ARCH_MAXWELL:   "maxwell",
	nvml.DEVICE_ARCH_PASCAL:    "pascal",
	nvml.DEVICE_ARCH_VOLTA:     "volta",
	nvml.DEVICE_ARCH_TURING:    "turing",
	nvml.DEVICE_ARCH_AMPERE:    "ampere",
	nvml.DEVICE_ARCH_ADA:       "ada",
	nvml.DEVICE_ARCH_HOPPER:    "hopper",
	nvml.DEVICE_ARCH_BLACKWELL: "blackwell",
	nvml.DEVICE_ARCH_RUBIN:     "rubin",
}

// identify asks who a device is. What it does not answer stays empty.
func (r *reader) identify(dev device, index int, uuid string) telemetry.Identity {
	id := telemetry.Identity{
		UUID: uuid, Index: index, Vendor: "nvidia",
		Model: word(dev.GetName()), Serial: word(dev.GetSerial()), PartNumber: word(dev.GetBoardPartNumber()),
		FirmwareVersion: word(dev.GetVbiosVersion()),
		DriverVersion:   r.driver, CUDAVersion: r.cuda, Minor: digits(dev.GetMinorNumber()),
	}
	if pci, ret := dev.GetPciInfo(); ret == nvml.SUCCESS {
		id.PCI = telemetry.NormalizePCI(printable(text(pci.BusId[:])))
	}
	if r.has("nvmlDeviceGetMaxMigDeviceCount") {
		if n, ret := dev.GetMaxMigDeviceCount(); ret == nvml.SUCCESS && n > 0 { // as many as it has slices
			id.Slices = strconv.Itoa(n)
		}
	}
	if a, ret := dev.GetArchitecture(); ret == nvml.SUCCESS {
		id.Architecture = architectures[a]
	}
	if major, minor, ret := dev.GetCudaComputeCapability(); ret == nvml.SUCCESS {
		id.ComputeCapability = fmt.Sprintf("%d.%d", major, minor)
	}
	return id
}

// word is the answer, or nothing when there was none or what there was is no text.
func word(s string, ret nvml.Return) string {
	if ret != nvml.SUCCESS {
		return ""
	}
	return printable(s)
}

// printable is the text, or nothing when it is none.
func printable(s string) string {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return ""
		}
	}
	return strings.TrimSpace(s)
}

// digits is a number as a label, or nothing when there was none.
func digits(n int, ret nvml.Return) string {
	if ret != nvml.SUCCESS || n < 0 || n >= math.MaxUint32 {
		return ""
	}
	return strconv.Itoa(n)
}

// text is a C string.
func text[T int8 | uint8](chars []T) string {
	var b strings.Builder
	for _, c := range chars {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// cudaVersion turns the driver's 1000 × major + 10 × minor into 13.1.
func cudaVersion(n int) string { return fmt.Sprintf("%d.%d", n/1000, n%1000/10) }
