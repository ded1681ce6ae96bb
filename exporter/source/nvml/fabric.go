//go:build cgo

package nvml

import (
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// faultShifts are where each fault stands in the mask of NVML_GPU_FABRIC_HEALTH_MASK: two bits, of
// which 1 is yes and 2 is no; but for the configuration, which has four, of which 1 is that nothing
// is wrong and more is what is.
var faultShifts = [...]uint{
	telemetry.FabricFaultDegradedBandwidth:      nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_DEGRADED_BW,
	telemetry.FabricFaultRouteRecovery:          nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_RECOVERY,
	telemetry.FabricFaultRouteUnhealthy:         nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY,
	telemetry.FabricFaultAccessTimeout:          nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ACCESS_TIMEOUT_RECOVERY,
	telemetry.FabricFaultIncorrectConfiguration: nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_INCORRECT_CONFIGURATION,
}

// summaries are the driver's summaries of health, in the order of the spec.
var summaries = [...]uint8{
	telemetry.FabricHealthHealthy:   nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY,
	telemetry.FabricHealthLimited:   nvml.GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY,
	telemetry.FabricHealthUnhealthy: nvml.GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY,
}

// fabric reads how the device has joined the fabric. The states are in the spec's order.
func fabric(p *pass, out *telemetry.Fabric) {
	f, why := call(p, askFabric, 0, p.dev.FabricV3)
	if why == metric.Unsupported { // of a driver whose struct has no summary
		var before nvml.GpuFabricInfo_v2
		before, why = call(p, askFabric, 1, p.dev.FabricV2)
		f = nvml.GpuFabricInfo_v3{
			ClusterUuid: before.ClusterUuid, Status: before.Status, CliqueId: before.CliqueId,
			State: before.State, HealthMask: before.HealthMask,
		}
	}
	if why == metric.Unsupported { // of a driver before R550, which tells no health
		var first nvml.GpuFabricInfo
		first, why = call(p, askFabricState, 0, p.dev.GetGpuFabricInfo)
		f = nvml.GpuFabricInfo_v3{ClusterUuid: first.ClusterUuid, Status: first.Status, CliqueId: first.CliqueId, State: first.State}
	}
	if why == nil && int(f.State) >= len(out.State) {
		why = metric.Implausible
	}
	for i := range out.State {
		keepState(&out.State[i], why, i == int(f.State))
	}
	if why == nil && f.State == nvml.GPU_FABRIC_STATE_NOT_SUPPORTED {
		why = metric.Unsupported
	}
	joined := why == nil && f.State == nvml.GPU_FABRIC_STATE_COMPLETED
	if why == nil && !joined { // status, mask and summary are valid once the device has joined
		why = metric.NoData
	}
	for i, shift := range faultShifts {
		faulty(&out.Fault[i], why, f.HealthMask>>shift, i == int(telemetry.FabricFaultIncorrectConfiguration))
	}
	faulty(&out.PartitionAssigned, why, f.HealthMask>>nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_PARTITION_ASSIGNED, false)
	health(&out.Health, why, f.HealthSummary)
	keepState(&out.Error, why, nvml.Return(f.Status) != nvml.SUCCESS)
	if joined {
		out.Info = p.h.joined(f.ClusterUuid, f.CliqueId)
	}
}

// faulty reads one fault of the mask.
func faulty(v *metric.Value, why *metric.Reason, bits uint32, configuration bool) {
	if configuration {
		n := bits & 15
		if why == nil && n == 0 {
			why = metric.Unsupported
		}
		keepState(v, why, n > nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NONE)
		return
	}
	n := bits & 3
	switch {
	case why != nil:
	case n == 0:
		why = metric.Unsupported
	case n == 3:
		why = metric.Implausible
	}
	keepState(v, why, n == nvml.GPU_FABRIC_HEALTH_MASK_DEGRADED_BW_TRUE)
}

// health reads the summary, which may be one this version does not know.
func health(out *[len(summaries)]metric.Value, why *metric.Reason, summary uint8) {
	switch {
	case why != nil:
	case summary == nvml.GPU_FABRIC_HEALTH_SUMMARY_NOT_SUPPORTED:
		why = metric.Unsupported
	case !slices.Contains(summaries[:], summary):
		why = metric.Implausible
	}
	for i, s := range summaries {
		keepState(&out[i], why, summary == s)
	}
}

// place is where a device has joined the fabric, with its labels made once.
type place struct {
	cluster [16]uint8
	clique  uint32
	info    []metric.Keyed
}

// joined is the info of the fabric the device has joined.
func (h *handle) joined(cluster [16]uint8, clique uint32) []metric.Keyed {
	if at := &h.place; at.info == nil || at.cluster != cluster || at.clique != clique {
		*at = place{cluster: cluster, clique: clique}
		x := hex.EncodeToString(cluster[:])
		one := metric.Keyed{Labels: telemetry.FabricInfoAttributes{
			FabricCluster: x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:],
			FabricClique:  strconv.FormatUint(uint64(clique), 10),
		}.Labels()}
		one.Value.Set(1)
		at.info = []metric.Keyed{one}
	}
	return h.place.info
}
