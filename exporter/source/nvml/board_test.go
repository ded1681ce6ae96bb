//go:build cgo

package nvml

import (
	"fmt"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func TestPerformanceState(t *testing.T) {
	for state, wanted := range map[nvml.Pstates]any{
		nvml.PSTATE_0: 0., nvml.PSTATE_8: 8., nvml.PSTATE_15: 15., nvml.PSTATE_UNKNOWN: metric.NoData, 16: metric.Implausible, -1: metric.Implausible,
	} {
		d := answering("GPU-0")
		d.GetPerformanceStateFunc = func() (nvml.Pstates, nvml.Return) { return state, nvml.SUCCESS }
		out, _ := readOnce(t, newFakeLibrary(d))
		switch w := wanted.(type) {
		case float64:
			want(t, fmt.Sprint("state ", state), out.Mode.PerformanceState, w)
		case *metric.Reason:
			want(t, fmt.Sprint("state ", state), out.Mode.PerformanceState, w)
		}
	}
}

func TestComputeModes(t *testing.T) {
	for mode, holds := range map[nvml.ComputeMode]telemetry.ComputeMode{
		nvml.COMPUTEMODE_DEFAULT: telemetry.ComputeModeDefault, nvml.COMPUTEMODE_EXCLUSIVE_THREAD: telemetry.ComputeModeExclusiveThread,
		nvml.COMPUTEMODE_PROHIBITED: telemetry.ComputeModeProhibited, nvml.COMPUTEMODE_EXCLUSIVE_PROCESS: telemetry.ComputeModeExclusiveProcess,
		4: telemetry.ComputeModeUnknown, 255: telemetry.ComputeModeUnknown, -1: -1, 808334905: -1,
	} {
		d := answering("GPU-0")
		d.GetComputeModeFunc = func() (nvml.ComputeMode, nvml.Return) { return mode, nvml.SUCCESS }
		out, _ := readOnce(t, newFakeLibrary(d))
		for i, v := range out.Mode.ComputeMode {
			what := fmt.Sprintf("mode %d: %s", mode, telemetry.ComputeMode(i))
			switch {
			case holds < 0:
				want(t, what, v, metric.Implausible)
			case telemetry.ComputeMode(i) == holds:
				want(t, what, v, 1.)
			default:
				want(t, what, v, 0.)
			}
		}
	}
}

func TestModes(t *testing.T) {
	d := answering("GPU-0")
	on := func() (nvml.EnableState, nvml.Return) { return nvml.FEATURE_ENABLED, nvml.SUCCESS }
	d.GetPersistenceModeFunc, d.GetDisplayActiveFunc = on, on
	d.GetAccountingModeFunc = func() (nvml.EnableState, nvml.Return) { return -1, nvml.SUCCESS }
	d.GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 1, nvml.SUCCESS }
	l := newFakeLibrary(d)
	l.confidential = func() (nvml.ConfComputeSystemState, nvml.Return) {
		return nvml.ConfComputeSystemState{CcFeature: nvml.CC_SYSTEM_FEATURE_ENABLED}, nvml.SUCCESS
	}
	out, _ := readOnce(t, l)
	want(t, "persistence", out.Mode.PersistenceEnabled, 1.)
	want(t, "display", out.Mode.DisplayActive, 1.)
	want(t, "accounting of no state", out.Mode.AccountingEnabled, metric.Implausible)
	want(t, "MIG", out.Mode.MIGEnabled[telemetry.ModePhaseCurrent], 0.)
	want(t, "MIG after a reset", out.Mode.MIGEnabled[telemetry.ModePhasePending], 1.)
	want(t, "chip to chip", out.Mode.C2cEnabled, 0.)
	want(t, "confidential computing", out.Mode.ConfidentialComputeEnabled, 1.)

	l.confidential = func() (nvml.ConfComputeSystemState, nvml.Return) {
		return nvml.ConfComputeSystemState{}, nvml.ERROR_NOT_SUPPORTED
	}
	d.GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_NOT_SUPPORTED }
	out, _ = readOnce(t, l)
	want(t, "confidential computing", out.Mode.ConfidentialComputeEnabled, metric.Unsupported)
	want(t, "MIG", out.Mode.MIGEnabled[telemetry.ModePhaseCurrent], metric.Unsupported)
	l.missing = []string{"nvmlSystemGetConfComputeState", "nvmlDeviceGetC2cModeInfoV"}
	out, _ = readOnce(t, l)
	want(t, "confidential computing, before R535", out.Mode.ConfidentialComputeEnabled, metric.Unsupported)
	want(t, "chip to chip, before R545", out.Mode.C2cEnabled, metric.Unsupported)
}

// Without sessions there is nothing to average, and an average of 0 would be a lie.
func TestEncoder(t *testing.T) {
	d := answering("GPU-0")
	sessions := 0
	d.GetEncoderStatsFunc = func() (int, uint32, uint32, nvml.Return) { return sessions, 237, 4271133, nvml.SUCCESS }
	d.GetFBCStatsFunc = func() (nvml.FBCStats, nvml.Return) {
		return nvml.FBCStats{SessionsCount: uint32(sessions), AverageFPS: 60, AverageLatency: 900}, nvml.SUCCESS
	}
	out, _ := readOnce(t, newFakeLibrary(d))
	want(t, "sessions", out.Encoder.Sessions, 0.)
	want(t, "frames of no session", out.Encoder.FrameRate, metric.NoData)
	want(t, "latency of no session", out.Encoder.Latency, metric.NoData)
	want(t, "captured frames of no session", out.Encoder.CaptureFrameRate, metric.NoData)
	sessions = 2
	out, _ = readOnce(t, newFakeLibrary(d))
	want(t, "sessions", out.Encoder.Sessions, 2.)
	want(t, "frames", out.Encoder.FrameRate, 237.)
	if got, _ := out.Encoder.Latency.Get(); got < 4.27113 || got > 4.27114 {
		t.Errorf("latency %v s, want 4.271133", got)
	}
	want(t, "captures", out.Encoder.CaptureSessions, 2.)
	want(t, "captured frames", out.Encoder.CaptureFrameRate, 60.)
	d.GetEncoderStatsFunc = func() (int, uint32, uint32, nvml.Return) { return 2, 808334905, 5, nvml.SUCCESS }
	out, _ = readOnce(t, newFakeLibrary(d))
	want(t, "808334905 frames a second", out.Encoder.FrameRate, metric.Implausible)
	d.GetEncoderStatsFunc = func() (int, uint32, uint32, nvml.Return) { return sessions, 237, 4271133, nvml.SUCCESS }
	sessions = 808334905
	out, _ = readOnce(t, newFakeLibrary(d))
	want(t, "808334905 sessions", out.Encoder.Sessions, metric.Implausible)
	sessions = -1
	out, _ = readOnce(t, newFakeLibrary(d))
	want(t, "sessions of all ones", out.Encoder.Sessions, metric.Implausible)
	d.GetEncoderStatsFunc = func() (int, uint32, uint32, nvml.Return) { return 0, 0, 0, nvml.ERROR_NOT_SUPPORTED }
	out, _ = readOnce(t, newFakeLibrary(d))
	want(t, "sessions it has not", out.Encoder.Sessions, metric.Unsupported)
	want(t, "frames it has not", out.Encoder.FrameRate, metric.Unsupported)
}

func TestFans(t *testing.T) {
	d := answering("GPU-0")
	d.GetNumFansFunc = func() (int, nvml.Return) { return 3, nvml.SUCCESS }
	d.GetFanSpeed_v2Func = func(i int) (uint32, nvml.Return) {
		return [...]uint32{30, 110, 808334905}[i], [...]nvml.Return{nvml.SUCCESS, nvml.SUCCESS, nvml.SUCCESS}[i]
	}
	d.GetFanSpeedRPMFunc = func() (nvml.FanSpeedInfo, nvml.Return) { return nvml.FanSpeedInfo{Speed: 1500}, nvml.SUCCESS }
	n := started(t, newFakeLibrary(d))
	h := n.list()[0]
	out := n.read(h).Fan
	if len(out.Speed) != 3 || len(out.RotationFrequency) != 1 {
		t.Fatalf("%d speeds and %d frequencies of three fans", len(out.Speed), len(out.RotationFrequency))
	}
	want(t, "first", out.Speed[0].Value, 0.3)
	want(t, "second, for a while above its highest", out.Speed[1].Value, 1.1)
	want(t, "third", out.Speed[2].Value, metric.Implausible)
	want(t, "turns a second", out.RotationFrequency[0].Value, 25.)
	if a, b := out.Speed[0].Labels.Text(), out.Speed[2].Labels.Text(); a != `gpu_fan="0"` || b != `gpu_fan="2"` {
		t.Errorf("labels %s and %s", a, b)
	}
	d.GetFanSpeedRPMFunc = func() (nvml.FanSpeedInfo, nvml.Return) { return nvml.FanSpeedInfo{Speed: 808334905}, nvml.SUCCESS }
	want(t, "13 million turns a second", n.read(h).Fan.RotationFrequency[0].Value, metric.Implausible)
	d.GetFanSpeedRPMFunc = func() (nvml.FanSpeedInfo, nvml.Return) { return nvml.FanSpeedInfo{}, nvml.ERROR_NOT_SUPPORTED }
	if f := n.read(h).Fan.RotationFrequency; f != nil {
		t.Errorf("of a fan that does not tell: %v", f[0].Value)
	}
	if again := n.read(h).Fan; again.Speed[1].Labels != out.Speed[1].Labels {
		t.Error("labels are made at each read")
	}
	for _, c := range []struct {
		fans int
		ret  nvml.Return
	}{{0, nvml.SUCCESS}, {-1, nvml.SUCCESS}, {808334905, nvml.SUCCESS}, {2, nvml.ERROR_NOT_SUPPORTED}} {
		d.GetNumFansFunc = func() (int, nvml.Return) { return c.fans, c.ret }
		if out, _ := readOnce(t, newFakeLibrary(d)); len(out.Fan.Speed) != 0 {
			t.Errorf("%d fans (%d): %d speeds", c.fans, c.ret, len(out.Fan.Speed))
		}
	}
}

func TestMemory(t *testing.T) {
	d := answering("GPU-0")
	d.GetBAR1MemoryInfoFunc = func() (nvml.BAR1Memory, nvml.Return) {
		return nvml.BAR1Memory{Bar1Total: 128 << 30, Bar1Used: 4 << 20}, nvml.SUCCESS
	}
	protected := nvml.Memory{}
	d.GetConfComputeProtectedMemoryUsageFunc = func() (nvml.Memory, nvml.Return) { return protected, nvml.SUCCESS }
	out, _ := readOnce(t, newFakeLibrary(d))
	m := out.Memory
	want(t, "BAR1", m.Bar1Limit, float64(128<<30))
	want(t, "BAR1 in use", m.Bar1Usage, float64(4<<20))
	want(t, "protected, confidential computing off", m.ProtectedLimit, 0.)
	want(t, "protected in use, confidential computing off", m.ProtectedUsage, 0.)
	sum := 0.
	for _, v := range []metric.Value{m.Usage, m.Free, m.Reserved} {
		n, _ := v.Get()
		sum += n
	}
	want(t, "used, free and reserved together", m.Limit, sum)
	protected = nvml.Memory{Total: 79 << 30, Used: 5 << 30}
	out, _ = readOnce(t, newFakeLibrary(d))
	want(t, "protected", out.Memory.ProtectedLimit, float64(79<<30))
	want(t, "protected in use", out.Memory.ProtectedUsage, float64(5<<30))
	protected = nvml.Memory{Total: 1, Used: 2}
	d.GetBAR1MemoryInfoFunc = func() (nvml.BAR1Memory, nvml.Return) { return nvml.BAR1Memory{Bar1Total: 1, Bar1Used: 2}, nvml.SUCCESS }
	out, _ = readOnce(t, newFakeLibrary(d))
	want(t, "more protected than there is", out.Memory.ProtectedUsage, metric.Implausible)
	want(t, "more of BAR1 than there is", out.Memory.Bar1Usage, metric.Implausible)
	want(t, "its size", out.Memory.Bar1Limit, metric.Implausible)
}
