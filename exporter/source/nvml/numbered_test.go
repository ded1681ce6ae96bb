//go:build cgo

package nvml

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Each count of a link is the driver's own number; here each field answers with its number.
func TestNumbersOfLinks(t *testing.T) {
	answers := map[uint32]nvml.FieldValue{170: valued(u32, 1), 171: valued(u32, 1)}
	for id := range uint32(303) {
		if answers[id] == (nvml.FieldValue{}) && id != 165 && id != 91 {
			answers[id] = valued(ull, uint64(id))
		}
	}
	answers[293] = valued(u32, 0x30a)
	l := newFakeLibrary(linked(1, answers))
	l.driver = "610.57.04"
	out, _ := readOnce(t, l)
	const c2c = telemetry.LinkTypeC2c
	for sort, kinds := range map[telemetry.LinkType]map[telemetry.LinkErrorType]float64{
		pcie: {
			telemetry.LinkErrorTypeReplay: 94, telemetry.LinkErrorTypeReplayRollover: 95, telemetry.LinkErrorTypeRecovery: 169,
			telemetry.LinkErrorTypeCorrectable: 173, telemetry.LinkErrorTypeNakReceived: 174, telemetry.LinkErrorTypeReceiver: 175,
			telemetry.LinkErrorTypeBadTlp: 176, telemetry.LinkErrorTypeNakSent: 177, telemetry.LinkErrorTypeBadDllp: 178,
			telemetry.LinkErrorTypeNonfatal: 179, telemetry.LinkErrorTypeFatal: 180, telemetry.LinkErrorTypeUnsupportedRequest: 181,
			telemetry.LinkErrorTypeLcrc: 182, telemetry.LinkErrorTypeLane: 183,
		},
		nvlink: {
			telemetry.LinkErrorTypeReplay: 161, telemetry.LinkErrorTypeCrc: 163, telemetry.LinkErrorTypeMalformed: 206, telemetry.LinkErrorTypeOverrun: 207,
			telemetry.LinkErrorTypeReceive: 208, telemetry.LinkErrorTypeRemote: 209, telemetry.LinkErrorTypeHeader: 210, telemetry.LinkErrorTypeIntegrity: 211,
			telemetry.LinkErrorTypeDiscarded: 212, telemetry.LinkErrorTypeRecoveryFailed: 214, telemetry.LinkErrorTypeRecovery: 215,
			telemetry.LinkErrorTypeEffective: 219, telemetry.LinkErrorTypeSymbol: 221,
		},
		c2c: {telemetry.LinkErrorTypeCrc: 231, telemetry.LinkErrorTypeReplay: 232, telemetry.LinkErrorTypeReplayBackToBack: 233},
	} {
		links := linksOf(out, sort)
		if len(links) != 1 {
			t.Fatalf("%d links of %s, want 1", len(links), sort)
		}
		for kind, v := range links[0].Errors {
			kind := telemetry.LinkErrorType(kind)
			if id, ok := kinds[kind]; ok {
				want(t, sort.String()+" "+kind.String(), v, id)
			} else if n, ok := v.Get(); ok {
				t.Errorf("%s %s = %v, want none", sort, kind, n)
			}
		}
	}
	host, link := linksOf(out, pcie)[0], linksOf(out, nvlink)[0]
	want(t, "PCIe sent", host.Io[sent], 197.)
	want(t, "PCIe received", host.Io[telemetry.NetworkIoDirectionReceive], 198.)
	want(t, "NVLink sent", link.Io[sent], 202.)
	want(t, "NVLink received", link.Io[telemetry.NetworkIoDirectionReceive], 204.)
	want(t, "blocks sent", link.RetryBlocks[telemetry.LinkRetryFirst], 294.)
	want(t, "blocks sent again", link.RetryBlocks[telemetry.LinkRetryAgain], 295.)
	want(t, "raw wrong bits", link.BitError[telemetry.LinkBitErrorTypeRaw], 3e-10)
	for i, v := range link.FecBlocks {
		want(t, telemetry.LinkFecErrors(i).String(), v, float64(235+i))
	}
	want(t, "links to the fabric", out.Fabric.Links, 147.)
}

// The same of what a device throttles by, and stalls at.
func TestNumbersOfTimes(t *testing.T) {
	d := answering("GPU-0")
	answers := map[uint32]nvml.FieldValue{297: valued(u32, 50)}
	for _, id := range []uint32{74, 75, 76, 77, 78, 79, 80, 81, 269, 270, 271} {
		answers[id] = valued(ull, 1e9*uint64(id)/8)
	}
	d.fields(answers)
	l := newFakeLibrary(d)
	l.driver = "610.57.04"
	out, _ := readOnce(t, l)
	for cause, id := range map[telemetry.ThrottleCause]float64{
		telemetry.ThrottleCauseSWPowerCap: 74, telemetry.ThrottleCauseSyncBoost: 76, telemetry.ThrottleCauseSWThermal: 269,
		telemetry.ThrottleCauseHWThermal: 270, telemetry.ThrottleCauseHWPowerBrake: 271,
	} {
		if n, ok := out.Throttle.Time[cause].Get(); !ok || n < id/8-1e-9 || n > id/8+1e-9 {
			t.Errorf("%s = %v (%v), want %v", cause, n, out.Throttle.Time[cause].Why(), id/8)
		}
	}
	for policy, id := range map[telemetry.ThrottlePolicy]float64{
		telemetry.ThrottlePolicyThermal: 75, telemetry.ThrottlePolicyBoardLimit: 77, telemetry.ThrottlePolicyLowUtilization: 78,
		telemetry.ThrottlePolicyReliability: 79, telemetry.ThrottlePolicyApplicationClocks: 80, telemetry.ThrottlePolicyBaseClocks: 81,
	} {
		if n, ok := out.Throttle.PolicyTime[policy].Get(); !ok || n < id/8-1e-9 || n > id/8+1e-9 {
			t.Errorf("%s = %v (%v), want %v", policy, n, out.Throttle.PolicyTime[policy].Why(), id/8)
		}
	}
	want(t, "stalls of the matrix units", out.Utilization.MmaStall, 0.5)
}
