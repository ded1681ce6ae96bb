//go:build cgo

package nvml

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// virtualizations are the words for nvmlGpuVirtualizationMode_t; bare metal has none.
var virtualizations = map[nvml.GpuVirtualizationMode]string{
	nvml.GPU_VIRTUALIZATION_MODE_PASSTHROUGH: "passthrough",
	nvml.GPU_VIRTUALIZATION_MODE_VGPU:        "vgpu",
	nvml.GPU_VIRTUALIZATION_MODE_HOST_VGPU:   "host_vgpu",
	nvml.GPU_VIRTUALIZATION_MODE_HOST_VSGA:   "host_vsga",
}

// brands are the words for nvmlBrandType_t.
var brands = map[nvml.BrandType]string{
	nvml.BRAND_QUADRO: "quadro", nvml.BRAND_TESLA: "tesla", nvml.BRAND_NVS: "nvs", nvml.BRAND_GRID: "grid",
	nvml.BRAND_GEFORCE: "geforce", nvml.BRAND_TITAN: "titan", nvml.BRAND_NVIDIA_VAPPS: "nvidia_vapps",
	nvml.BRAND_NVIDIA_VPC: "nvidia_vpc", nvml.BRAND_NVIDIA_VCS: "nvidia_vcs", nvml.BRAND_NVIDIA_VWS: "nvidia_vws",
	nvml.BRAND_NVIDIA_CLOUD_GAMING: "nvidia_cloud_gaming", nvml.BRAND_QUADRO_RTX: "quadro_rtx",
	nvml.BRAND_NVIDIA_RTX: "nvidia_rtx", nvml.BRAND_NVIDIA: "nvidia", nvml.BRAND_GEFORCE_RTX: "geforce_rtx",
	nvml.BRAND_TITAN_RTX: "titan_rtx",
}

// platform asks where a device sits. What it does not answer stays empty.
func (r *reader) platform(dev device, minor string) []metric.Keyed {
	a := telemetry.PlatformInfoAttributes{Minor: minor}
	if mode, ret := dev.GetVirtualizationMode(); ret == nvml.SUCCESS {
		a.Virtualization = virtualizations[mode]
	}
	if r.has("nvmlDeviceGetNumaNodeId") {
		a.NumaNode = digits(dev.GetNumaNodeId())
	}
	if r.has("nvmlDeviceGetModuleId") {
		a.Module = digits(dev.GetModuleId())
	}
	if r.has("nvmlDeviceGetPlatformInfo") {
		if x, ret := dev.GetPlatformInfo(); ret == nvml.SUCCESS {
			rack(&a, x)
		}
	}
	return info(a.Labels())
}

// rack takes over where the device is in its rack. A board in no rack answers with zeros.
func rack(a *telemetry.PlatformInfoAttributes, x nvml.PlatformInfo) {
	a.ChassisSerial = printable(text(x.ChassisSerialNumber[:]))
	guid := strings.TrimRight(hex.EncodeToString(x.IbGuid[:]), "0")
	if a.ChassisSerial == "" && guid == "" {
		return
	}
	if guid != "" {
		a.PlatformGuid = "0x" + hex.EncodeToString(x.IbGuid[:8])
	}
	a.ChassisSlot, a.ChassisTray, a.ChassisHost = strconv.Itoa(int(x.SlotNumber)), strconv.Itoa(int(x.TrayIndex)), strconv.Itoa(int(x.HostId))
	a.Module = strconv.Itoa(int(x.ModuleId))
	a.PlatformPeerType = strconv.Itoa(int(x.PeerType))
}

// firmware asks what runs inside a device.
func (r *reader) firmware(dev device) []metric.Keyed {
	a := telemetry.PlatformFirmwareInfoAttributes{
		DriverBranch:   r.branch,
		InforomVersion: word(dev.GetInforomImageVersion()),
		InforomOem:     word(dev.GetInforomVersion(nvml.INFOROM_OEM)),
		InforomECC:     word(dev.GetInforomVersion(nvml.INFOROM_ECC)),
		InforomPower:   word(dev.GetInforomVersion(nvml.INFOROM_POWER)),

		NvlinkBandwidthMode: r.bandwidth,
	}
	if brand, ret := dev.GetBrand(); ret == nvml.SUCCESS {
		a.Brand = brands[brand]
	}
	if r.has("nvmlDeviceGetGspFirmwareVersion") {
		a.GspVersion = word(dev.GetGspFirmwareVersion())
	}
	if r.has("nvmlDeviceGetGspFirmwareMode") {
		if on, _, ret := dev.GetGspFirmwareMode(); ret == nvml.SUCCESS {
			a.GspMode = map[bool]string{false: "off", true: "on"}[on]
		}
	}
	if r.has("nvmlDeviceGetPdi") {
		if x, ret := dev.GetPdi(); ret == nvml.SUCCESS {
			a.Pdi = fmt.Sprintf("0x%016x", x.Value)
		}
	}
	return info(a.Labels())
}

// info is what is always 1.
func info(l *metric.Labels) []metric.Keyed {
	one := metric.Keyed{Labels: l}
	one.Value.Set(1)
	return []metric.Keyed{one}
}
