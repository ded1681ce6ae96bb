//go:build cgo

package nvml

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// What is at the other end is asked when a link comes up, until it is told.
func TestRemoteEnds(t *testing.T) {
	d := linked(1, nil)
	asked, ret, bus := 0, nvml.SUCCESS, "00000000:C1:00.0"
	d.GetNvLinkRemoteDeviceTypeFunc = func(int) (nvml.IntNvLinkDeviceType, nvml.Return) {
		asked++
		return nvml.NVLINK_DEVICE_TYPE_SWITCH, ret
	}
	d.GetNvLinkRemotePciInfoFunc = func(int) (nvml.PciInfo, nvml.Return) {
		var p nvml.PciInfo
		for i, c := range bus {
			p.BusId[i] = int8(c)
		}
		return p, nvml.SUCCESS
	}
	n := started(t, newFakeLibrary(d))
	h := n.list()[0]
	for _, s := range []struct {
		what  string
		up    uint64
		ret   nvml.Return
		bus   string
		info  string
		asked int
	}{
		{"down from the start", 0, nvml.SUCCESS, "00000000:C1:00.0", "", 0},
		{"up, and nobody knows", 1, nvml.ERROR_TIMEOUT, "00000000:C1:00.0", "", 1},
		{"up", 1, nvml.SUCCESS, "00000000:C1:00.0", `gpu_link_remote_type="switch",gpu_link_remote_address="0000:c1:00.0"`, 2},
		{"still up", 1, nvml.SUCCESS, "00000000:C2:00.0", `gpu_link_remote_type="switch",gpu_link_remote_address="0000:c1:00.0"`, 2},
		{"down", 0, nvml.SUCCESS, "00000000:C2:00.0", `gpu_link_remote_type="switch",gpu_link_remote_address="0000:c1:00.0"`, 2},
		{"up at another", 1, nvml.SUCCESS, "00000000:C2:00.0", `gpu_link_remote_type="switch",gpu_link_remote_address="0000:c2:00.0"`, 3},
		{"still up", 1, nvml.SUCCESS, "00000000:C2:00.0", `gpu_link_remote_type="switch",gpu_link_remote_address="0000:c2:00.0"`, 3},
		{"down again", 0, nvml.SUCCESS, "FFFFFFFF:FF:FF.0", `gpu_link_remote_type="switch",gpu_link_remote_address="0000:c2:00.0"`, 3},
		{"up at a switch that is not on this bus", 1, nvml.SUCCESS, "FFFFFFFF:FF:FF.0", `gpu_link_remote_type="switch"`, 4},
	} {
		ret, bus = s.ret, s.bus
		d.fields(map[uint32]nvml.FieldValue{91: valued(u32, 1), 165: valued(u32, s.up)})
		x := linksOf(n.read(h), nvlink)[0]
		want(t, s.what, x.Up, float64(s.up))
		info := ""
		for _, k := range x.Info {
			info += k.Labels.Text()
		}
		if info != s.info || asked != s.asked {
			t.Errorf("%s: %q after %d questions, want %q after %d", s.what, info, asked, s.info, s.asked)
		}
	}
}

// A driver that can not tell is not asked for ever, and one that lacks the call never.
func TestRemoteEndsUntold(t *testing.T) {
	d := linked(1, nil)
	asked := 0
	d.GetNvLinkRemoteDeviceTypeFunc = func(int) (nvml.IntNvLinkDeviceType, nvml.Return) {
		asked++
		return 0, nvml.ERROR_NOT_SUPPORTED
	}
	n := started(t, newFakeLibrary(d))
	h := n.list()[0]
	for range 3 {
		if x := linksOf(n.read(h), nvlink)[0]; x.Info != nil {
			t.Errorf("told %s", x.Info[0].Labels.Text())
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
	l := newFakeLibrary(d)
	l.missing, asked = []string{"nvmlDeviceGetNvLinkRemoteDeviceType"}, 0
	if _, why := readOnce(t, l); why != nil || asked != 0 {
		t.Errorf("%v; a call that the driver lacks was made %d times: that ends the process", why, asked)
	}
}

// The kinds of the other end; an address that is not told is left out.
func TestRemoteTypes(t *testing.T) {
	for sort, text := range map[nvml.IntNvLinkDeviceType]string{
		nvml.NVLINK_DEVICE_TYPE_GPU: `gpu_link_remote_type="gpu"`, nvml.NVLINK_DEVICE_TYPE_IBMNPU: `gpu_link_remote_type="host"`,
		nvml.NVLINK_DEVICE_TYPE_SWITCH: `gpu_link_remote_type="switch"`, nvml.NVLINK_DEVICE_TYPE_UNKNOWN: "", 77: "",
	} {
		d := linked(1, nil)
		d.GetNvLinkRemoteDeviceTypeFunc = func(int) (nvml.IntNvLinkDeviceType, nvml.Return) { return sort, nvml.SUCCESS }
		d.GetNvLinkRemotePciInfoFunc = func(int) (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, nvml.ERROR_UNKNOWN }
		out, _ := readOnce(t, newFakeLibrary(d))
		info := linksOf(out, nvlink)[0].Info
		if text == "" && info != nil || text != "" && (len(info) != 1 || info[0].Labels.Text() != text) {
			t.Errorf("%d: %+v, want %q", sort, info, text)
		}
	}
}

// The speed of PCI Express follows from generation and width, and lacks what one of them lacks.
func TestPCIeSpeed(t *testing.T) {
	timeout := faults[nvml.ERROR_TIMEOUT]
	for _, c := range []struct {
		generation, width int
		genRet, widthRet  nvml.Return
		speed             any
	}{
		{1, 16, 0, 0, 4e9}, {2, 16, 0, 0, 8e9}, {3, 16, 0, 0, 15753846154.}, {4, 16, 0, 0, 31507692308.}, {5, 16, 0, 0, 63015384615.},
		{6, 16, 0, 0, 118e9}, {5, 8, 0, 0, 31507692308.}, {1, 1, 0, 0, 250e6},
		{7, 16, 0, 0, metric.Unsupported}, // not known to this version
		{0, 16, 0, 0, metric.Implausible}, {5, 0, 0, 0, metric.Implausible}, {5, 808334905, 0, 0, metric.Implausible},
		{5, 16, nvml.ERROR_TIMEOUT, 0, timeout}, {5, 16, 0, nvml.ERROR_TIMEOUT, timeout},
		{5, 16, 0, nvml.ERROR_NOT_SUPPORTED, metric.Unsupported}, {5, 16, nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NOT_SUPPORTED, metric.Unsupported},
	} {
		d := answering("GPU-0")
		d.GetCurrPcieLinkGenerationFunc = func() (int, nvml.Return) { return c.generation, c.genRet }
		d.GetCurrPcieLinkWidthFunc = func() (int, nvml.Return) { return c.width, c.widthRet }
		d.GetMaxPcieLinkGenerationFunc, d.GetMaxPcieLinkWidthFunc = d.GetCurrPcieLinkGenerationFunc, d.GetCurrPcieLinkWidthFunc
		out, _ := readOnce(t, newFakeLibrary(d))
		x := linksOf(out, pcie)[0]
		for what, v := range map[string]metric.Value{"speed": x.Speed, "limit": x.SpeedLimit} {
			switch w := c.speed.(type) {
			case float64:
				want(t, what, v, w)
			case *metric.Reason:
				want(t, what, v, w)
			}
		}
		if t.Failed() {
			t.Fatalf("%+v", c)
		}
	}
}

// What the board can do at best is asked once.
func TestPCIeLimits(t *testing.T) {
	d := answering("GPU-0")
	generation := 4
	d.GetMaxPcieLinkGenerationFunc = func() (int, nvml.Return) {
		d.note("limit")
		return generation, nvml.SUCCESS
	}
	d.GetMaxPcieLinkWidthFunc = func() (int, nvml.Return) { return 16, nvml.SUCCESS }
	n := started(t, newFakeLibrary(d))
	h := n.list()[0]
	for range 3 {
		x := linksOf(n.read(h), pcie)[0]
		want(t, "generation", x.GenerationLimit, 4.)
		want(t, "width", x.WidthLimit, 16.)
		want(t, "speed", x.SpeedLimit, 31507692308.)
	}
	if asked := d.asked["limit"]; asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	generation = 5
	n.turn(2 * forgetEvery)
	want(t, "generation when asked again", linksOf(n.read(h), pcie)[0].GenerationLimit, 5.)
}
