//go:build cgo

package nvml

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/source"
)

// library is what is called of libnvidia-ml as a whole.
type library interface {
	Init() nvml.Return
	Shutdown() nvml.Return
	LookupSymbol(name string) error
	SystemGetDriverVersion() (string, nvml.Return)
	SystemGetCudaDriverVersion() (int, nvml.Return)
	SystemGetDriverBranch() (nvml.SystemDriverBranchInfo, nvml.Return)
	SystemGetConfComputeState() (nvml.ConfComputeSystemState, nvml.Return)
	SystemGetNvlinkBwMode() (uint32, nvml.Return)
	DeviceGetCount() (int, nvml.Return)
	DeviceGetHandleByIndex(int) (device, nvml.Return)
	EventSetCreate() (nvml.EventSet, nvml.Return)
	GpmSampleAlloc() (nvml.GpmSample, nvml.Return)
	GpmMetricsGet(*nvml.GpmMetricsGetType) nvml.Return
}

// device is what is called of one device, or of one MIG instance, beyond what NVML itself calls so.
type device interface {
	Raw() nvml.Device // the driver's own handle, by which its events name the device
	Instance(index int) (device, nvml.Return)
	GetGpuInstanceById(id int) (nvml.GpuInstanceInfo, nvml.Return) // what there is to know of it
	calls

	// Structs that NVML has in versions, at the version read.
	TemperatureV1() (nvml.Temperature, nvml.Return)
	FabricV3() (nvml.GpuFabricInfo_v3, nvml.Return)
	FabricV2() (nvml.GpuFabricInfo_v2, nvml.Return)
	GetGpuFabricInfo() (nvml.GpuFabricInfo, nvml.Return)
	C2CModeV1() (nvml.C2cModeInfo_v1, nvml.Return)
	GpmSupportV1() (nvml.GpmSupport, nvml.Return)
}

// calls are those of nvml.Device that are made.
type calls interface {
	GetUUID() (string, nvml.Return)
	GetName() (string, nvml.Return)
	GetPciInfo() (nvml.PciInfo, nvml.Return)
	GetSerial() (string, nvml.Return)
	GetBoardPartNumber() (string, nvml.Return)
	GetBrand() (nvml.BrandType, nvml.Return)
	GetArchitecture() (nvml.DeviceArchitecture, nvml.Return)
	GetCudaComputeCapability() (int, int, nvml.Return)
	GetVbiosVersion() (string, nvml.Return)
	GetMinorNumber() (int, nvml.Return)
	GetNumaNodeId() (int, nvml.Return)
	GetModuleId() (int, nvml.Return)
	GetPlatformInfo() (nvml.PlatformInfo, nvml.Return)
	GetPdi() (nvml.Pdi, nvml.Return)
	GetVirtualizationMode() (nvml.GpuVirtualizationMode, nvml.Return)
	GetInforomImageVersion() (string, nvml.Return)
	GetInforomVersion(nvml.InforomObject) (string, nvml.Return)
	GetGspFirmwareVersion() (string, nvml.Return)
	GetGspFirmwareMode() (bool, bool, nvml.Return)

	GetPowerUsage() (uint32, nvml.Return)
	GetTotalEnergyConsumption() (uint64, nvml.Return)
	GetTemperature(nvml.TemperatureSensors) (uint32, nvml.Return)
	GetTemperatureThreshold(nvml.TemperatureThresholds) (uint32, nvml.Return)
	GetMarginTemperature() (nvml.MarginTemperature, nvml.Return)
	GetMemoryInfo() (nvml.Memory, nvml.Return)
	GetMemoryInfo_v2() (nvml.Memory_v2, nvml.Return)
	GetBAR1MemoryInfo() (nvml.BAR1Memory, nvml.Return)
	GetConfComputeProtectedMemoryUsage() (nvml.Memory, nvml.Return)
	GetClockInfo(nvml.ClockType) (uint32, nvml.Return)
	GetMaxClockInfo(nvml.ClockType) (uint32, nvml.Return)
	GetApplicationsClock(nvml.ClockType) (uint32, nvml.Return)
	GetUtilizationRates() (nvml.Utilization, nvml.Return)
	GetEncoderUtilization() (uint32, uint32, nvml.Return)
	GetDecoderUtilization() (uint32, uint32, nvml.Return)
	GetJpgUtilization() (uint32, uint32, nvml.Return)
	GetOfaUtilization() (uint32, uint32, nvml.Return)
	GetEncoderStats() (int, uint32, uint32, nvml.Return)
	GetFBCStats() (nvml.FBCStats, nvml.Return)
	GetSamples(nvml.SamplingType, uint64) (nvml.ValueType, []nvml.Sample, nvml.Return)
	GetCurrentClocksEventReasons() (uint64, nvml.Return)
	GetCurrentClocksThrottleReasons() (uint64, nvml.Return)
	GetSupportedClocksEventReasons() (uint64, nvml.Return)
	GetSupportedClocksThrottleReasons() (uint64, nvml.Return)
	GetFieldValues([]nvml.FieldValue) nvml.Return

	GetPerformanceState() (nvml.Pstates, nvml.Return)
	GetPersistenceMode() (nvml.EnableState, nvml.Return)
	GetComputeMode() (nvml.ComputeMode, nvml.Return)
	GetDisplayActive() (nvml.EnableState, nvml.Return)
	GetAccountingMode() (nvml.EnableState, nvml.Return)
	GetMigMode() (int, int, nvml.Return)

	GetMemoryErrorCounter(nvml.MemoryErrorType, nvml.EccCounterType, nvml.MemoryLocation) (uint64, nvml.Return)
	GetSramEccErrorStatus() (nvml.EccSramErrorStatus, nvml.Return)
	GetRowRemapperHistogram() (nvml.RowRemapperHistogramValues, nvml.Return)
	GetRepairStatus() (nvml.RepairStatus, nvml.Return)
	GetUnrepairableMemoryFlag_v1() (nvml.UnrepairableMemoryStatus_v1, nvml.Return)
	GetNumFans() (int, nvml.Return)
	GetFanSpeed_v2(int) (uint32, nvml.Return)
	GetFanSpeedRPM() (nvml.FanSpeedInfo, nvml.Return)

	GetCurrPcieLinkGeneration() (int, nvml.Return)
	GetCurrPcieLinkWidth() (int, nvml.Return)
	GetMaxPcieLinkGeneration() (int, nvml.Return)
	GetMaxPcieLinkWidth() (int, nvml.Return)
	GetPcieThroughput(nvml.PcieUtilCounter) (uint32, nvml.Return)
	GetNvLinkRemoteDeviceType(int) (nvml.IntNvLinkDeviceType, nvml.Return)
	GetNvLinkRemotePciInfo(int) (nvml.PciInfo, nvml.Return)

	GetMaxMigDeviceCount() (int, nvml.Return)
	GetGpuInstanceId() (int, nvml.Return)
	GetComputeInstanceId() (int, nvml.Return)
	GetAttributes() (nvml.DeviceAttributes, nvml.Return)
	GpmSampleGet(nvml.GpmSample) nvml.Return
	GpmMigSampleGet(int, nvml.GpmSample) nvml.Return

	GetComputeRunningProcesses() ([]nvml.ProcessInfo, nvml.Return)
	GetGraphicsRunningProcesses() ([]nvml.ProcessInfo, nvml.Return)
	GetMPSComputeRunningProcesses() ([]nvml.ProcessInfo, nvml.Return)
	GetProcessUtilization(uint64) ([]nvml.ProcessUtilizationSample, nvml.Return)

	GetSupportedEventTypes() (uint64, nvml.Return)
	RegisterEvents(uint64, nvml.EventSet) nvml.Return
}

// shared is the real library, its handles seen through the narrow interfaces.
type shared struct{ nvml.Interface }

func (s shared) DeviceGetHandleByIndex(i int) (device, nvml.Return) {
	d, ret := s.Interface.DeviceGetHandleByIndex(i)
	return handleOf{d}, ret
}

func (s shared) LookupSymbol(name string) error { return s.Extensions().LookupSymbol(name) }

// handleOf is the driver's handle of one device.
type handleOf struct{ nvml.Device }

func (h handleOf) Raw() nvml.Device { return h.Device }

func (h handleOf) Instance(i int) (device, nvml.Return) {
	d, ret := h.GetMigDeviceHandleByIndex(i)
	return handleOf{d}, ret
}

// GetGpuInstanceById asks for the instance and then what it is. Whatever its name, it needs no freeing.
func (h handleOf) GetGpuInstanceById(id int) (nvml.GpuInstanceInfo, nvml.Return) {
	gi, ret := h.Device.GetGpuInstanceById(id)
	if ret != nvml.SUCCESS {
		return nvml.GpuInstanceInfo{}, ret
	}
	return gi.GetInfo()
}

func (h handleOf) TemperatureV1() (nvml.Temperature, nvml.Return) { return h.GetTemperatureV().V1() }

func (h handleOf) FabricV3() (nvml.GpuFabricInfo_v3, nvml.Return) { return h.GetGpuFabricInfoV().V3() }

func (h handleOf) FabricV2() (nvml.GpuFabricInfo_v2, nvml.Return) { return h.GetGpuFabricInfoV().V2() }

func (h handleOf) C2CModeV1() (nvml.C2cModeInfo_v1, nvml.Return) { return h.GetC2cModeInfoV().V1() }

// GetProcessUtilization is go-nvml's, which asks how many there are and then for these, and slices
// beyond what it made room for when there are more by then.
func (h handleOf) GetProcessUtilization(seen uint64) (all []nvml.ProcessUtilizationSample, ret nvml.Return) {
	defer func() {
		if p := recover(); p != nil {
			all, ret = nil, nvml.ERROR_INSUFFICIENT_SIZE
		}
	}()
	return h.Device.GetProcessUtilization(seen)
}

func (h handleOf) GpmSupportV1() (nvml.GpmSupport, nvml.Return) {
	return h.GpmQueryDeviceSupportV().V1()
}

const libraryName = "libnvidia-ml.so.1"

// elsewhere is where systems keep the library that do not tell the loader: GKE, the driver's
// container of the GPU operator, WSL, NixOS and Talos.
var elsewhere = []string{
	"/home/kubernetes/bin/nvidia/lib64", "/run/nvidia/driver/usr/lib/x86_64-linux-gnu", "/run/nvidia/driver/usr/lib64",
	"/run/nvidia/driver/usr/lib/aarch64-linux-gnu", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib",
	"/run/opengl-driver/lib", "/usr/local/glibc/usr/lib",
}

// find returns the library at the path, or where the loader or a system keeps it. Calling a
// function that a library lacks ends the process, so one that is not NVML must not be called at all.
func find(path string) (library, error) {
	places := []string{path}
	if path == "" {
		places = []string{libraryName}
		for _, dir := range elsewhere {
			places = append(places, dir+"/"+libraryName)
		}
	}
	var absent error
	for _, place := range places {
		there, err := check(place)
		switch {
		case !there:
			absent = cmp.Or(absent, err) // the first is what is usual
		case err != nil:
			return nil, err
		default:
			return shared{nvml.New(nvml.WithLibraryPath(place))}, nil
		}
	}
	return nil, fmt.Errorf("nvml: open: %w: %w", source.ErrNoLibrary, absent)
}

var errNotNVML = errors.New("is not NVIDIA's management library, or older than R450")

// check opens the library as go-nvml will, and lets go of it again. It says whether there is such a file.
func check(path string) (there bool, _ error) {
	l := dl.New(path, dl.RTLD_LAZY|dl.RTLD_LOCAL)
	if err := l.Open(); err != nil {
		if said := err.Error(); strings.HasPrefix(said, path+":") && strings.Contains(said, "No such file") { // else it is one it needs
			return false, err
		}
		return true, fmt.Errorf("nvml: open %s: %w", path, err)
	}
	defer l.Close() //nolint:errcheck // it is opened again at once
	for _, name := range baseline {
		if err := l.Lookup(name); err != nil {
			return true, fmt.Errorf("nvml: %s %w: %w", path, errNotNVML, err)
		}
	}
	return true, nil
}

// baseline are the functions that are called without looking whether the driver has them: each driver
// since R450 does, and so has what is a library of one.
var baseline = [...]string{
	"nvmlInit_v2", "nvmlShutdown", "nvmlErrorString", "nvmlSystemGetDriverVersion", "nvmlSystemGetCudaDriverVersion",
	"nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetSerial",
	"nvmlDeviceGetBoardPartNumber", "nvmlDeviceGetVbiosVersion", "nvmlDeviceGetMinorNumber", "nvmlDeviceGetPciInfo_v3",
	"nvmlDeviceGetArchitecture", "nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetVirtualizationMode", "nvmlDeviceGetBrand",
	"nvmlDeviceGetInforomImageVersion", "nvmlDeviceGetInforomVersion", "nvmlDeviceGetFieldValues",
	"nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId",
	"nvmlEventSetCreate", "nvmlEventSetFree", "nvmlEventSetWait_v2", "nvmlDeviceGetSupportedEventTypes", "nvmlDeviceRegisterEvents",
}
