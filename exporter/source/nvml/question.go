//go:build cgo

package nvml

import (
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// question is a call of a device. Its symbol is looked up when the library is opened: calling a
// function that the driver lacks ends the process, because the loader looks for it only then.
type question uint8

// The calls that reading makes, in the order of the header.
const (
	askPower question = iota
	askEnergy
	askTemperature
	askTemperatureV
	askThreshold
	askMargin
	askMemory
	askMemoryV2
	askBAR1
	askProtected
	askClock
	askMaxClock
	askApplicationsClock
	askUtilization
	askEncoder
	askDecoder
	askJPEG
	askOFA
	askEncoderStats
	askCaptureStats
	askSamples
	askEventReasons
	askThrottleReasons
	askFields
	askPerformance
	askPersistence
	askComputeMode
	askDisplay
	askAccounting
	askMIG
	askErrors
	askSRAM
	askBanks
	askRepair
	askUnrepairable
	askFans
	askFan
	askFanRPM
	askGeneration
	askWidth
	askMaxGeneration
	askMaxWidth
	askThroughput
	askRemote
	askFabric
	askFabricState
	askC2C
	askInstance
	askAttributes
	askPlacement
	askGPM
	askGPMInstance
	askCompute
	askGraphics
	askMPS
	askProcessUse
	questions
)

// symbols are the C functions of the questions. Where go-nvml chooses among versions, any will do.
var symbols = [questions]string{
	askPower:             "nvmlDeviceGetPowerUsage",
	askEnergy:            "nvmlDeviceGetTotalEnergyConsumption",
	askTemperature:       "nvmlDeviceGetTemperature",
	askTemperatureV:      "nvmlDeviceGetTemperatureV",
	askThreshold:         "nvmlDeviceGetTemperatureThreshold",
	askMargin:            "nvmlDeviceGetMarginTemperature",
	askMemory:            "nvmlDeviceGetMemoryInfo",
	askMemoryV2:          "nvmlDeviceGetMemoryInfo_v2",
	askBAR1:              "nvmlDeviceGetBAR1MemoryInfo",
	askProtected:         "nvmlDeviceGetConfComputeProtectedMemoryUsage",
	askClock:             "nvmlDeviceGetClockInfo",
	askMaxClock:          "nvmlDeviceGetMaxClockInfo",
	askApplicationsClock: "nvmlDeviceGetApplicationsClock",
	askUtilization:       "nvmlDeviceGetUtilizationRates",
	askEncoder:           "nvmlDeviceGetEncoderUtilization",
	askDecoder:           "nvmlDeviceGetDecoderUtilization",
	askJPEG:              "nvmlDeviceGetJpgUtilization",
	askOFA:               "nvmlDeviceGetOfaUtilization",
	askEncoderStats:      "nvmlDeviceGetEncoderStats",
	askCaptureStats:      "nvmlDeviceGetFBCStats",
	askSamples:           "nvmlDeviceGetSamples",
	askEventReasons:      "nvmlDeviceGetCurrentClocksEventReasons",
	askThrottleReasons:   "nvmlDeviceGetCurrentClocksThrottleReasons",
	askFields:            "nvmlDeviceGetFieldValues",
	askPerformance:       "nvmlDeviceGetPerformanceState",
	askPersistence:       "nvmlDeviceGetPersistenceMode",
	askComputeMode:       "nvmlDeviceGetComputeMode",
	askDisplay:           "nvmlDeviceGetDisplayActive",
	askAccounting:        "nvmlDeviceGetAccountingMode",
	askMIG:               "nvmlDeviceGetMigMode",
	askErrors:            "nvmlDeviceGetMemoryErrorCounter",
	askSRAM:              "nvmlDeviceGetSramEccErrorStatus",
	askBanks:             "nvmlDeviceGetRowRemapperHistogram",
	askRepair:            "nvmlDeviceGetRepairStatus",
	askUnrepairable:      "nvmlDeviceGetUnrepairableMemoryFlag_v1",
	askFans:              "nvmlDeviceGetNumFans",
	askFan:               "nvmlDeviceGetFanSpeed_v2",
	askFanRPM:            "nvmlDeviceGetFanSpeedRPM",
	askGeneration:        "nvmlDeviceGetCurrPcieLinkGeneration",
	askWidth:             "nvmlDeviceGetCurrPcieLinkWidth",
	askMaxGeneration:     "nvmlDeviceGetMaxPcieLinkGeneration",
	askMaxWidth:          "nvmlDeviceGetMaxPcieLinkWidth",
	askThroughput:        "nvmlDeviceGetPcieThroughput",
	askRemote:            "nvmlDeviceGetNvLinkRemoteDeviceType",
	askFabric:            "nvmlDeviceGetGpuFabricInfoV",
	askFabricState:       "nvmlDeviceGetGpuFabricInfo",
	askC2C:               "nvmlDeviceGetC2cModeInfoV",
	askInstance:          "nvmlDeviceGetMigDeviceHandleByIndex",
	askAttributes:        "nvmlDeviceGetAttributes_v2|nvmlDeviceGetAttributes",
	askPlacement:         "nvmlDeviceGetGpuInstanceById",
	askGPM:               "nvmlGpmSampleGet",
	askGPMInstance:       "nvmlGpmMigSampleGet",
	askCompute:           "nvmlDeviceGetComputeRunningProcesses_v3|nvmlDeviceGetComputeRunningProcesses_v2|nvmlDeviceGetComputeRunningProcesses",
	askGraphics:          "nvmlDeviceGetGraphicsRunningProcesses_v3|nvmlDeviceGetGraphicsRunningProcesses_v2|nvmlDeviceGetGraphicsRunningProcesses",
	askMPS:               "nvmlDeviceGetMPSComputeRunningProcesses_v3|nvmlDeviceGetMPSComputeRunningProcesses_v2|nvmlDeviceGetMPSComputeRunningProcesses",
	askProcessUse:        "nvmlDeviceGetProcessUtilization",
}

// absent marks the questions whose function the driver lacks.
func absent(lib library) *[questions]bool {
	out := new([questions]bool)
	for q, names := range symbols {
		out[q] = !has(lib, names)
	}
	return out
}

// has says whether the driver has the function, or one of those divided by bars.
func has(lib library, names string) bool {
	for name := range strings.SplitSeq(names, "|") {
		if lib.LookupSymbol(name) == nil {
			return true
		}
	}
	return false
}

// variants is the most ways one question is asked: the memories that can have errors, twice for
// what was corrected and twice for what is kept.
const variants = 32

// call asks a question in one of its variants, unless the device can not answer it, and returns
// the reason there is no answer.
func call[T any](p *pass, q question, variant int, ask func() (T, nvml.Return)) (T, *metric.Reason) {
	var none T
	if p.down != nil {
		return none, metric.Unread
	}
	a := &p.h.answers.of[q][variant]
	if a.off || p.h.answers.absent[q] {
		return none, metric.Unsupported
	}
	got, ret := ask()
	return got, p.why(a, ret)
}

// read asks a question of one number and keeps the answer in the spec's unit, or the reason there is none.
func read[N number](p *pass, v *metric.Value, q question, variant int, unit string, scale float64, ask func() (N, nvml.Return)) {
	n, why := call(p, q, variant, ask)
	put(v, why, unit, scale, n)
}

// fixed is what does not change of a board. It is asked again when refusals are forgotten.
type fixed struct {
	clocks, temperatures [4]metric.Value
	generation, width    int
}

// readFixed asks a question of one number unless its answer is known.
func readFixed[N number](p *pass, v, known *metric.Value, q question, variant int, unit string, scale float64, ask func() (N, nvml.Return)) {
	if _, ok := known.Get(); ok && p.down == nil {
		*v = *known
		return
	}
	read(p, v, q, variant, unit, scale, ask)
	*known = *v
}
