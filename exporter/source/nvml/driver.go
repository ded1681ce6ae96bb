//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// library is what is called of libnvidia-ml as a whole.
type library interface {
	Init() nvml.Return
	Shutdown() nvml.Return
	LookupSymbol(name string) error
	SystemGetDriverVersion() (string, nvml.Return)
	SystemGetCudaDriverVersion() (int, nvml.Return)
	DeviceGetCount() (int, nvml.Return)
	DeviceGetHandleByIndex(int) (device, nvml.Return)
	EventSetCreate() (nvml.EventSet, nvml.Return)
}

// device is what is called of one device; nvml.Device has it all.
type device interface {
	GetUUID() (string, nvml.Return)
	GetName() (string, nvml.Return)
	GetPciInfo() (nvml.PciInfo, nvml.Return)
	GetSerial() (string, nvml.Return)
	GetBoardPartNumber() (string, nvml.Return)
	GetArchitecture() (nvml.DeviceArchitecture, nvml.Return)
	GetCudaComputeCapability() (int, int, nvml.Return)
	GetVbiosVersion() (string, nvml.Return)

	GetPowerUsage() (uint32, nvml.Return)
	GetTotalEnergyConsumption() (uint64, nvml.Return)
	GetTemperature(nvml.TemperatureSensors) (uint32, nvml.Return)
	GetTemperatureThreshold(nvml.TemperatureThresholds) (uint32, nvml.Return)
	GetMarginTemperature() (nvml.MarginTemperature, nvml.Return)
	GetMemoryInfo() (nvml.Memory, nvml.Return)
	GetMemoryInfo_v2() (nvml.Memory_v2, nvml.Return)
	GetClockInfo(nvml.ClockType) (uint32, nvml.Return)
	GetMaxClockInfo(nvml.ClockType) (uint32, nvml.Return)
	GetUtilizationRates() (nvml.Utilization, nvml.Return)
	GetEncoderUtilization() (uint32, uint32, nvml.Return)
	GetDecoderUtilization() (uint32, uint32, nvml.Return)
	GetJpgUtilization() (uint32, uint32, nvml.Return)
	GetOfaUtilization() (uint32, uint32, nvml.Return)
	GetSamples(nvml.SamplingType, uint64) (nvml.ValueType, []nvml.Sample, nvml.Return)
	GetCurrentClocksEventReasons() (uint64, nvml.Return)
	GetCurrentClocksThrottleReasons() (uint64, nvml.Return)
	GetSupportedClocksEventReasons() (uint64, nvml.Return)
	GetSupportedClocksThrottleReasons() (uint64, nvml.Return)
	GetFieldValues([]nvml.FieldValue) nvml.Return

	GetSupportedEventTypes() (uint64, nvml.Return)
	RegisterEvents(uint64, nvml.EventSet) nvml.Return
}

// shared is the real library, its handles seen through the narrow interface.
type shared struct{ nvml.Interface }

func newShared(path string) library {
	if path == "" {
		return shared{nvml.New()}
	}
	return shared{nvml.New(nvml.WithLibraryPath(path))}
}

func (s shared) DeviceGetHandleByIndex(i int) (device, nvml.Return) {
	return s.Interface.DeviceGetHandleByIndex(i)
}

func (s shared) LookupSymbol(name string) error { return s.Extensions().LookupSymbol(name) }

// symbols says which calls the installed driver has, of those that are younger than the oldest
// driver served (R450, CUDA 11.0) or deprecated, and so may go. A function the library lacks ends
// the process when it is called, because it is only then looked for; so each is looked up once,
// after Init.
type symbols struct {
	memoryV2         bool // R510
	jpeg, ofa        bool // R535
	eventReasons     bool // R535; ThrottleReasons before
	supportedReasons bool // R535; ThrottleReasons before
	margin           bool // R570
	throttleReasons  bool // deprecated in the header of CUDA 12.2
	supportedBefore  bool // the same
	temperature      bool // deprecated in the header of CUDA 13.0
}

func lookUp(lib library) symbols {
	has := func(name string) bool { return lib.LookupSymbol(name) == nil }
	return symbols{
		memoryV2:         has("nvmlDeviceGetMemoryInfo_v2"),
		jpeg:             has("nvmlDeviceGetJpgUtilization"),
		ofa:              has("nvmlDeviceGetOfaUtilization"),
		eventReasons:     has("nvmlDeviceGetCurrentClocksEventReasons"),
		supportedReasons: has("nvmlDeviceGetSupportedClocksEventReasons"),
		margin:           has("nvmlDeviceGetMarginTemperature"),
		temperature:      has("nvmlDeviceGetTemperature"),
		throttleReasons:  has("nvmlDeviceGetCurrentClocksThrottleReasons"),
		supportedBefore:  has("nvmlDeviceGetSupportedClocksThrottleReasons"),
	}
}
