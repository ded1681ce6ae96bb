//go:build cgo

package nvml

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// joining is a driver whose one device answers so of its fabric.
func joining(f nvml.GpuFabricInfo_v3, ret nvml.Return) *fakeLibrary {
	d := answering("GPU-0")
	d.fabricV3 = func() (nvml.GpuFabricInfo_v3, nvml.Return) { return f, ret }
	return newFakeLibrary(d)
}

// Each fault has its bits in the mask: yes, no, or not told.
func TestFabricFaults(t *testing.T) {
	const healthy = 2<<0 | 2<<2 | 2<<4 | 2<<6 | 1<<8 | 1<<12 // all told, nothing wrong, in a partition
	type faults map[telemetry.FabricFault]float64
	none := faults{
		telemetry.FabricFaultDegradedBandwidth: 0, telemetry.FabricFaultRouteRecovery: 0, telemetry.FabricFaultRouteUnhealthy: 0,
		telemetry.FabricFaultAccessTimeout: 0, telemetry.FabricFaultIncorrectConfiguration: 0,
	}
	const degraded, recovery, unhealthy, timeout, configuration = telemetry.FabricFaultDegradedBandwidth, telemetry.FabricFaultRouteRecovery,
		telemetry.FabricFaultRouteUnhealthy, telemetry.FabricFaultAccessTimeout, telemetry.FabricFaultIncorrectConfiguration
	for _, c := range []struct {
		name   string
		mask   uint32
		differ faults // from none; negative: not told
	}{
		{"healthy", healthy, nil},
		{"degraded", healthy&^3 | 1, faults{degraded: 1}},
		{"recovering", healthy&^(3<<2) | 1<<2, faults{recovery: 1}},
		{"unhealthy", healthy&^(3<<4) | 1<<4, faults{unhealthy: 1}},
		{"timed out", healthy&^(3<<6) | 1<<6, faults{timeout: 1}},
		{"wrong system GUID", healthy&^(15<<8) | 2<<8, faults{configuration: 1}},
		{"wrong chassis", healthy&^(15<<8) | 3<<8, faults{configuration: 1}},
		{"no partition", healthy&^(15<<8) | 4<<8, faults{configuration: 1}},
		{"too few NVLinks", healthy&^(15<<8) | 5<<8, faults{configuration: 1}},
		{"incompatible firmware", healthy&^(15<<8) | 6<<8, faults{configuration: 1}},
		{"wrong place", healthy&^(15<<8) | 7<<8, faults{configuration: 1}},
		{"state of the device", healthy&^(15<<8) | 8<<8, faults{configuration: 1}},
		{"one to come", healthy&^(15<<8) | 15<<8, faults{configuration: 1}},
		{"all at once", 1 | 1<<2 | 1<<4 | 1<<6 | 4<<8 | 2<<12, faults{degraded: 1, recovery: 1, unhealthy: 1, timeout: 1, configuration: 1}},
		{"a mask of nothing", 0, faults{degraded: -1, recovery: -1, unhealthy: -1, timeout: -1, configuration: -1}},
		{"the configuration not told", healthy &^ (15 << 8), faults{configuration: -1}},
	} {
		out, _ := readOnce(t, joining(nvml.GpuFabricInfo_v3{State: nvml.GPU_FABRIC_STATE_COMPLETED, HealthMask: c.mask, HealthSummary: 1}, nvml.SUCCESS))
		for fault, n := range none {
			if other, ok := c.differ[fault]; ok {
				n = other
			}
			if v := out.Fabric.Fault[fault]; n < 0 {
				want(t, c.name+": "+fault.String(), v, metric.Unsupported)
			} else {
				want(t, c.name+": "+fault.String(), v, n)
			}
		}
	}
	for bits, assigned := range map[uint32]any{0: metric.Unsupported, 1: 1., 2: 0., 3: metric.Implausible} {
		f := nvml.GpuFabricInfo_v3{State: nvml.GPU_FABRIC_STATE_COMPLETED, HealthMask: bits<<12 | bits}
		out, _ := readOnce(t, joining(f, nvml.SUCCESS))
		for what, v := range map[string]metric.Value{"in a partition": out.Fabric.PartitionAssigned, "degraded": out.Fabric.Fault[degraded]} {
			switch w := assigned.(type) {
			case float64:
				want(t, what, v, w)
			case *metric.Reason:
				want(t, what, v, w)
			}
		}
	}
}

// What joining has come to: the cluster is told once joined, and an error only of a join that has ended.
func TestFabricStates(t *testing.T) {
	cluster := [16]uint8{0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf}
	for state := range uint8(5) {
		f := nvml.GpuFabricInfo_v3{
			State: state, Status: uint32(nvml.ERROR_TIMEOUT), CliqueId: 7, ClusterUuid: cluster, HealthMask: 2, HealthSummary: nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY,
		}
		out, _ := readOnce(t, joining(f, nvml.SUCCESS))
		x := out.Fabric
		for i, v := range x.State {
			switch {
			case state > nvml.GPU_FABRIC_STATE_COMPLETED:
				want(t, "a state to come", v, metric.Implausible)
			case i == int(state):
				want(t, "the state that holds", v, 1.)
			default:
				want(t, "a state that does not", v, 0.)
			}
		}
		degraded := x.Fault[telemetry.FabricFaultDegradedBandwidth]
		switch state {
		case nvml.GPU_FABRIC_STATE_NOT_SUPPORTED:
			want(t, "fault where there is no fabric", degraded, metric.Unsupported)
			want(t, "health where there is no fabric", x.Health[telemetry.FabricHealthHealthy], metric.Unsupported)
			want(t, "error where there is no fabric", x.Error, metric.Unsupported)
		case nvml.GPU_FABRIC_STATE_NOT_STARTED, nvml.GPU_FABRIC_STATE_IN_PROGRESS:
			want(t, "fault while joining", degraded, metric.NoData)
			want(t, "health while joining", x.Health[telemetry.FabricHealthHealthy], metric.NoData)
			want(t, "partition while joining", x.PartitionAssigned, metric.NoData)
			want(t, "error while joining", x.Error, metric.NoData)
		case nvml.GPU_FABRIC_STATE_COMPLETED:
			want(t, "error of a join that failed", x.Error, 1.)
			if len(x.Info) != 1 || x.Info[0].Labels.Text() != `gpu_fabric_cluster="c0c1c2c3-c4c5-c6c7-c8c9-cacbcccdcecf",gpu_fabric_clique="7"` {
				t.Errorf("joined %+v", x.Info)
			}
		}
		if state != nvml.GPU_FABRIC_STATE_COMPLETED && x.Info != nil {
			t.Errorf("state %d: a cluster is told: %s", state, x.Info[0].Labels.Text())
		}
	}
	out, _ := readOnce(t, joining(nvml.GpuFabricInfo_v3{State: nvml.GPU_FABRIC_STATE_COMPLETED}, nvml.SUCCESS))
	want(t, "error of a join that succeeded", out.Fabric.Error, 0.)
	out, _ = readOnce(t, joining(nvml.GpuFabricInfo_v3{}, nvml.ERROR_NO_PERMISSION))
	want(t, "state not allowed", out.Fabric.State[0], metric.Denied)
	want(t, "fault not allowed", out.Fabric.Fault[0], metric.Denied)
}

func TestFabricHealth(t *testing.T) {
	const healthy, limited, unhealthy = telemetry.FabricHealthHealthy, telemetry.FabricHealthLimited, telemetry.FabricHealthUnhealthy
	for summary, holds := range map[uint8]telemetry.FabricHealth{
		nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY: healthy, nvml.GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY: unhealthy,
		nvml.GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY: limited, nvml.GPU_FABRIC_HEALTH_SUMMARY_NOT_SUPPORTED: -1, 9: -2,
	} {
		out, _ := readOnce(t, joining(nvml.GpuFabricInfo_v3{State: nvml.GPU_FABRIC_STATE_COMPLETED, HealthSummary: summary}, nvml.SUCCESS))
		for i, v := range out.Fabric.Health {
			switch {
			case holds == -1:
				want(t, "where it is not summed up", v, metric.Unsupported)
			case holds == -2:
				want(t, "a summary to come", v, metric.Implausible)
			case telemetry.FabricHealth(i) == holds:
				want(t, holds.String(), v, 1.)
			default:
				want(t, telemetry.FabricHealth(i).String(), v, 0.)
			}
		}
	}
}

// A driver whose struct has no summary yet is asked by the one before, and then by that alone.
func TestFabricBefore(t *testing.T) {
	d := answering("GPU-0")
	d.fabricV3 = func() (nvml.GpuFabricInfo_v3, nvml.Return) {
		return nvml.GpuFabricInfo_v3{}, nvml.ERROR_ARGUMENT_VERSION_MISMATCH
	}
	d.fabricV2 = func() (nvml.GpuFabricInfo_v2, nvml.Return) {
		return nvml.GpuFabricInfo_v2{State: nvml.GPU_FABRIC_STATE_COMPLETED, CliqueId: 3, HealthMask: 1}, nvml.SUCCESS
	}
	n := started(t, newFakeLibrary(d))
	h := n.list()[0]
	for range 2 {
		out := n.read(h).Fabric
		want(t, "joined", out.State[telemetry.FabricStateCompleted], 1.)
		want(t, "degraded", out.Fault[telemetry.FabricFaultDegradedBandwidth], 1.)
		want(t, "health", out.Health[telemetry.FabricHealthHealthy], metric.Unsupported)
		if len(out.Info) != 1 || out.Info[0].Labels.Get("gpu_fabric_clique") != "3" {
			t.Errorf("joined %+v", out.Info)
		}
	}
	if asked := d.asked["GetGpuFabricInfoVFunc3"]; asked != 1 {
		t.Errorf("asked %d times in two reads for what the driver does not have, want once", asked)
	}
}

// A driver before R550 has a call that tells no health.
func TestFabricOfOldDriver(t *testing.T) {
	d := answering("GPU-0")
	d.GetGpuFabricInfoFunc = func() (nvml.GpuFabricInfo, nvml.Return) {
		return nvml.GpuFabricInfo{State: nvml.GPU_FABRIC_STATE_COMPLETED, CliqueId: 5}, nvml.SUCCESS
	}
	l := newFakeLibrary(d)
	l.missing = []string{"nvmlDeviceGetGpuFabricInfoV"}
	n := started(t, l)
	out := n.read(n.list()[0]).Fabric
	want(t, "joined", out.State[telemetry.FabricStateCompleted], 1.)
	want(t, "failed", out.Error, 0.)
	want(t, "degraded", out.Fault[telemetry.FabricFaultDegradedBandwidth], metric.Unsupported)
	want(t, "health", out.Health[telemetry.FabricHealthHealthy], metric.Unsupported)
	if len(out.Info) != 1 || out.Info[0].Labels.Get("gpu_fabric_clique") != "5" {
		t.Errorf("joined %+v", out.Info)
	}
	if asked := d.asked["GetGpuFabricInfoVFunc3"] + d.asked["GetGpuFabricInfoVFunc2"]; asked != 0 {
		t.Errorf("asked %d times by a call the driver does not have", asked)
	}
}

// The labels are made once, and again when the device joins another fabric.
func TestFabricInfo(t *testing.T) {
	d := answering("GPU-0")
	clique := uint32(1)
	d.fabricV3 = func() (nvml.GpuFabricInfo_v3, nvml.Return) {
		return nvml.GpuFabricInfo_v3{State: nvml.GPU_FABRIC_STATE_COMPLETED, CliqueId: clique}, nvml.SUCCESS
	}
	n := started(t, newFakeLibrary(d))
	h := n.list()[0]
	first, second := n.read(h).Fabric.Info[0].Labels, n.read(h).Fabric.Info[0].Labels
	if first != second {
		t.Error("the labels are made at each read")
	}
	clique = 2
	if got := n.read(h).Fabric.Info[0].Labels.Get("gpu_fabric_clique"); got != "2" {
		t.Errorf("in another clique: %s", got)
	}
}
