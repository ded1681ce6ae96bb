//go:build cgo

package nvml

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// placed is a device that says so of its place in the rack.
func placed(x nvml.PlatformInfo) *fakeDevice {
	d := answering("GPU-0")
	d.GetPlatformInfoFunc = func() (nvml.PlatformInfo, nvml.Return) { return x, nvml.SUCCESS }
	d.GetModuleIdFunc = func() (int, nvml.Return) { return 4, nvml.SUCCESS }
	d.GetMinorNumberFunc = func() (int, nvml.Return) { return 3, nvml.SUCCESS }
	d.GetNumaNodeIdFunc = func() (int, nvml.Return) { return 1, nvml.SUCCESS }
	return d
}

// serial is a chassis serial number, or what stands in its place.
func serial(s string) (out [16]uint8) {
	copy(out[:], s)
	return out
}

func TestPlatform(t *testing.T) {
	guid := [16]uint8{0xb8, 0x3f, 0xd2, 0x03, 0x00, 0x12, 0x34, 0x50}
	for _, c := range []struct {
		name string
		info nvml.PlatformInfo
		want string
	}{
		{"in no rack, it answers with zeros", nvml.PlatformInfo{}, `gpu_minor="3",gpu_numa_node="1",gpu_module="4"`},
		{"in no rack, and yet on a module", nvml.PlatformInfo{HostId: 1, ModuleId: 2}, `gpu_minor="3",gpu_numa_node="1",gpu_module="4"`},
		{
			"in a rack", nvml.PlatformInfo{ChassisSerialNumber: serial("1820224000123"), SlotNumber: 5, TrayIndex: 3, HostId: 1, PeerType: 1, ModuleId: 2, IbGuid: guid},
			`gpu_minor="3",gpu_numa_node="1",gpu_module="2",gpu_chassis_serial="1820224000123",gpu_chassis_slot="5",gpu_chassis_tray="3",gpu_chassis_host="1",gpu_platform_guid="0xb83fd20300123450",gpu_platform_peer_type="1"`,
		},
		{
			"its serial all 16 bytes", nvml.PlatformInfo{ChassisSerialNumber: serial("1820224000123456")},
			`gpu_minor="3",gpu_numa_node="1",gpu_module="0",gpu_chassis_serial="1820224000123456",gpu_chassis_slot="0",gpu_chassis_tray="0",gpu_chassis_host="0",gpu_platform_peer_type="0"`,
		},
		{
			"its serial garbage", nvml.PlatformInfo{ChassisSerialNumber: serial("18\x80\x01"), SlotNumber: 5, IbGuid: guid},
			`gpu_minor="3",gpu_numa_node="1",gpu_module="0",gpu_chassis_slot="5",gpu_chassis_tray="0",gpu_chassis_host="0",gpu_platform_guid="0xb83fd20300123450",gpu_platform_peer_type="0"`,
		},
	} {
		out, _ := readOnce(t, newFakeLibrary(placed(c.info)))
		if got := out.Platform.Info[0].Labels.Text(); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
		want(t, c.name, out.Platform.Info[0].Value, 1.)
	}
	d := placed(nvml.PlatformInfo{ChassisSerialNumber: serial("1820224000123")})
	d.GetNumaNodeIdFunc = func() (int, nvml.Return) { return 1<<32 - 1, nvml.SUCCESS } // no node
	l := newFakeLibrary(d)
	l.missing = []string{"nvmlDeviceGetPlatformInfo", "nvmlDeviceGetModuleId"}
	out, _ := readOnce(t, l)
	if got := out.Platform.Info[0].Labels.Text(); got != `gpu_minor="3"` {
		t.Errorf("of a driver without the calls: %s", got)
	}
	for mode, word := range map[nvml.GpuVirtualizationMode]string{
		nvml.GPU_VIRTUALIZATION_MODE_NONE: "", nvml.GPU_VIRTUALIZATION_MODE_PASSTHROUGH: "passthrough", nvml.GPU_VIRTUALIZATION_MODE_VGPU: "vgpu",
		nvml.GPU_VIRTUALIZATION_MODE_HOST_VGPU: "host_vgpu", nvml.GPU_VIRTUALIZATION_MODE_HOST_VSGA: "host_vsga", 99: "",
	} {
		d.GetVirtualizationModeFunc = func() (nvml.GpuVirtualizationMode, nvml.Return) { return mode, nvml.SUCCESS }
		out, _ := readOnce(t, l)
		if got := out.Platform.Info[0].Labels.Get("gpu_virtualization"); got != word {
			t.Errorf("mode %d is %q, want %q", mode, got, word)
		}
	}
}

func TestFirmware(t *testing.T) {
	d := answering("GPU-0")
	d.GetInforomImageVersionFunc = func() (string, nvml.Return) { return "G520.0200.00.05", nvml.SUCCESS }
	d.GetInforomVersionFunc = func(o nvml.InforomObject) (string, nvml.Return) {
		return map[nvml.InforomObject]string{nvml.INFOROM_OEM: "2.1", nvml.INFOROM_ECC: "7.16", nvml.INFOROM_POWER: "\x80\x80"}[o], nvml.SUCCESS
	}
	d.GetGspFirmwareVersionFunc = func() (string, nvml.Return) { return "580.65.06", nvml.SUCCESS }
	d.GetGspFirmwareModeFunc = func() (bool, bool, nvml.Return) { return true, true, nvml.SUCCESS }
	d.GetBrandFunc = func() (nvml.BrandType, nvml.Return) { return nvml.BRAND_NVIDIA, nvml.SUCCESS }
	d.GetPdiFunc = func() (nvml.Pdi, nvml.Return) { return nvml.Pdi{Value: 0x1234}, nvml.SUCCESS }
	l := newFakeLibrary(d)
	for i, c := range "r580_00" {
		l.branch.Branch[i] = int8(c)
	}
	out, _ := readOnce(t, l)
	const all = `gpu_driver_branch="r580_00",gpu_inforom_version="G520.0200.00.05",gpu_inforom_oem="2.1",gpu_inforom_ecc="7.16",` +
		`gpu_gsp_version="580.65.06",gpu_gsp_mode="on",gpu_brand="nvidia",gpu_pdi="0x0000000000001234",gpu_nvlink_bandwidth_mode="0"`
	if got := out.Platform.FirmwareInfo[0].Labels.Text(); got != all {
		t.Errorf("%s\nwant\n%s", got, all)
	}
	l.missing = []string{
		"nvmlSystemGetDriverBranch", "nvmlDeviceGetGspFirmwareVersion", "nvmlDeviceGetGspFirmwareMode", "nvmlDeviceGetPdi", "nvmlSystemGetNvlinkBwMode",
	}
	d.GetBrandFunc = func() (nvml.BrandType, nvml.Return) { return 99, nvml.SUCCESS }
	out, _ = readOnce(t, l)
	if got := out.Platform.FirmwareInfo[0].Labels.Text(); got != `gpu_inforom_version="G520.0200.00.05",gpu_inforom_oem="2.1",gpu_inforom_ecc="7.16"` {
		t.Errorf("of a driver without the calls: %s", got)
	}
}
