//go:build cgo

package nvml

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// asked are the calls of each group, beyond those that say who the device is and whether MIG is on.
var asked = map[string]string{
	"clock":       "GetApplicationsClock GetClockInfo GetMaxClockInfo",
	"ecc":         "GetFieldValues GetMemoryErrorCounter GetSramEccErrorStatus",
	"encoder":     "GetEncoderStats GetFBCStats",
	"fabric":      "GetFieldValues GetGpuFabricInfoV",
	"fan":         "GetFanSpeedRPM GetFanSpeed_v2 GetNumFans",
	"links":       "GetCurrPcieLinkGeneration GetCurrPcieLinkWidth GetFieldValues GetMaxPcieLinkGeneration GetMaxPcieLinkWidth GetNvLinkRemoteDeviceType GetNvLinkRemotePciInfo",
	"memory":      "GetBAR1MemoryInfo GetConfComputeProtectedMemoryUsage GetMemoryInfo_v2",
	"mode":        "GetAccountingMode GetC2cModeInfoV GetComputeMode GetDisplayActive GetPerformanceState GetPersistenceMode",
	"partitions":  "GetGpuInstanceById Instance",
	"platform":    "GetBrand GetGspFirmwareMode GetGspFirmwareVersion GetInforomImageVersion GetInforomVersion GetModuleId GetNumaNodeId GetPdi GetPlatformInfo GetVirtualizationMode",
	"power":       "GetFieldValues GetPowerUsage GetSamples GetTotalEnergyConsumption",
	"processes":   "GetComputeRunningProcesses GetGraphicsRunningProcesses GetMPSComputeRunningProcesses GetProcessUtilization Instance",
	"profiling":   "GpmMigSampleGet GpmQueryDeviceSupport GpmSampleGet Instance",
	"repair":      "GetFieldValues GetRepairStatus GetRowRemapperHistogram GetUnrepairableMemoryFlag_v1",
	"thermal":     "GetFieldValues GetMarginTemperature GetTemperature GetTemperatureThreshold",
	"throttle":    "GetCurrentClocksEventReasons GetFieldValues GetSupportedClocksEventReasons",
	"utilization": "GetDecoderUtilization GetEncoderUtilization GetJpgUtilization GetOfaUtilization GetSamples GetUtilizationRates",
	"xid":         "GetSupportedEventTypes RegisterEvents",
}

const always = "GetArchitecture GetBoardPartNumber GetCudaComputeCapability GetMaxMigDeviceCount GetMigMode GetMinorNumber GetName GetPciInfo GetSerial GetUUID GetVbiosVersion"

// With everything but one group off, only that group's calls are made.
func TestWhatIsOffIsNotAsked(t *testing.T) {
	of := map[string]bool{}
	for _, d := range telemetry.Descs() {
		if slices.Contains(d.Sources, "nvml") {
			of[d.Group] = true
		}
	}
	if got, want := slices.Sorted(maps.Keys(of)), slices.Sorted(maps.Keys(asked)); !slices.Equal(got, want) {
		t.Fatalf("groups read are %v, known here %v", got, want)
	}
	for group, want := range asked {
		device := answering("GPU-1")
		device.cut(part("MIG-1", "1g.10gb", 7, 0))
		on := func(d *metric.Desc) bool { return d.Group == group && d.Name != "gpu.link.throughput" }
		r, err := open(newFakeLibrary(device), config(), newArchive(), choose(on))
		if err != nil {
			t.Fatal(err)
		}
		devices, err := r.Devices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		devices[0].(*handle).Sample(t.Context())
		if why := devices[0].Read(t.Context(), new(telemetry.Device)); why != nil {
			t.Fatal(why.Text)
		}
		closed(t, r)
		if got := askedOf(device); got != want {
			t.Errorf("%s asks %s\nwant %s", group, got, want)
		}
	}
}

// askedOf names the calls made but those of the identity.
func askedOf(device *fakeDevice) string {
	names := map[string]bool{}
	for question := range device.asked {
		name, _, _ := strings.Cut(strings.Fields(question)[0], "Func")
		if !slices.Contains(strings.Fields(always), name) {
			names[name] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), " ")
}

// A metric of numbered fields that is off is left out of the batch.
func TestFieldsThatAreOffAreNotAsked(t *testing.T) {
	c := choose(func(d *metric.Desc) bool { return d.Name == "gpu.power.limit" || d.Name == "gpu.link.up" })
	if len(c.device) != 5 || len(c.link) != 2 {
		t.Errorf("%d fields for five limits, %d for two sorts of link", len(c.device), len(c.link))
	}
	for _, f := range c.device {
		if f.metric != "gpu.power.limit" {
			t.Errorf("field %d of %s is asked", f.id, f.metric)
		}
	}
}
