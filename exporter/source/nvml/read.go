//go:build cgo

package nvml

import (
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// pass is one reading of a device.
type pass struct {
	h    *handle
	dev  device
	out  *telemetry.Device
	down *metric.Reason // the device as a whole can not be read; nothing more is asked
}

// put keeps an answer already given.
func put[N number](v *metric.Value, why *metric.Reason, unit string, scale float64, n N) {
	scaled := float64(n) * scale
	switch {
	case why == metric.Unread: // nothing was asked
	case why != nil:
		v.Fail(why)
	case float64(n) >= blank || float64(n) == math.MaxUint32 || !plausible(unit, scaled):
		v.Fail(metric.Implausible)
	default:
		v.Set(scaled)
	}
}

// reason turns a return code into the reason there is no number, nil for success, and says
// whether it is the whole device that can not be read. The codes are those of nvmlReturn_t.
func reason(ret nvml.Return) (why *metric.Reason, whole bool) {
	switch ret {
	case nvml.SUCCESS:
		return nil, false
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_ARGUMENT_VERSION_MISMATCH,
		nvml.ERROR_DEPRECATED, nvml.ERROR_VGPU_ECC_NOT_SUPPORTED:
		return metric.Unsupported, false
	case nvml.ERROR_NO_PERMISSION:
		return metric.Denied, false
	case nvml.ERROR_NO_DATA, nvml.ERROR_NOT_READY:
		return metric.NoData, false
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_GPU_NOT_FOUND, nvml.ERROR_UNINITIALIZED, nvml.ERROR_DRIVER_NOT_LOADED:
		return metric.Lost, true
	case nvml.ERROR_RESET_REQUIRED, nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return faults[ret], true
	}
	if why := faults[ret]; why != nil {
		return why, false
	}
	return unlisted, false
}

// faults are the reasons NVML alone gives, made once.
var faults = map[nvml.Return]*metric.Reason{
	nvml.ERROR_INVALID_ARGUMENT:         {Text: "nvml: invalid argument", Fault: true},
	nvml.ERROR_NOT_FOUND:                {Text: "nvml: not found", Fault: true},
	nvml.ERROR_INSUFFICIENT_SIZE:        {Text: "nvml: insufficient size", Fault: true},
	nvml.ERROR_INSUFFICIENT_POWER:       {Text: "nvml: insufficient external power", Fault: true},
	nvml.ERROR_TIMEOUT:                  {Text: "nvml: timeout", Fault: true},
	nvml.ERROR_IRQ_ISSUE:                {Text: "nvml: interrupt issue", Fault: true},
	nvml.ERROR_CORRUPTED_INFOROM:        {Text: "nvml: corrupted inforom", Fault: true},
	nvml.ERROR_RESET_REQUIRED:           {Text: "nvml: reset required", Fault: true},
	nvml.ERROR_OPERATING_SYSTEM:         {Text: "nvml: operating system", Fault: true},
	nvml.ERROR_LIB_RM_VERSION_MISMATCH:  {Text: "nvml: driver and library differ", Fault: true},
	nvml.ERROR_IN_USE:                   {Text: "nvml: in use", Fault: true},
	nvml.ERROR_MEMORY:                   {Text: "nvml: out of memory", Fault: true},
	nvml.ERROR_INSUFFICIENT_RESOURCES:   {Text: "nvml: insufficient resources", Fault: true},
	nvml.ERROR_FREQ_NOT_SUPPORTED:       {Text: "nvml: frequency not supported", Fault: true},
	nvml.ERROR_INVALID_STATE:            {Text: "nvml: invalid state", Fault: true},
	nvml.ERROR_RESET_TYPE_NOT_SUPPORTED: {Text: "nvml: reset type not supported", Fault: true},
	nvml.ERROR_UNKNOWN:                  {Text: "nvml: unknown error", Fault: true},
}

// unlisted stands for codes newer than this table.
var unlisted = &metric.Reason{Text: "nvml: unlisted error", Fault: true}
