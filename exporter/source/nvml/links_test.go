//go:build cgo

package nvml

import (
	"fmt"
	"maps"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// linked is a device with so many NVLinks that are up, answering the other fields as told.
func linked(n uint64, answers map[uint32]nvml.FieldValue) *fakeDevice {
	d := answering("GPU-0")
	all := map[uint32]nvml.FieldValue{91: valued(u32, n), 170: failing(nvml.ERROR_NOT_SUPPORTED), 165: valued(u32, 1)}
	maps.Copy(all, answers)
	d.fields(all)
	return d
}

// linksOf are the links of one sort.
func linksOf(d *telemetry.Device, sort telemetry.LinkType) (out []telemetry.Links) {
	for _, l := range d.Links {
		if l.Labels.Get("gpu_link_type") == sort.String() {
			out = append(out, l.Read.Links)
		}
	}
	return out
}

const (
	pcie, nvlink = telemetry.LinkTypePCIE, telemetry.LinkTypeNvlink
	sent         = telemetry.NetworkIoDirectionTransmit
)

// A number that stands for another is read where the device does not have the first, and never in
// turn with it: they count from different beginnings.
func TestAlternativeNumbers(t *testing.T) {
	const none = -1. // not told
	fault, no := failing(nvml.ERROR_UNKNOWN), failing(nvml.ERROR_NOT_SUPPORTED)
	for name, steps := range map[string][]struct {
		first, instead nvml.FieldValue
		forget         bool // ten minutes have gone by
		want           float64
	}{
		"Hopper": {
			{no, valued(ull, 5), false, 5 * 1024}, {no, valued(ull, 6), false, 6 * 1024},
		},
		"Blackwell, which has both": {
			{valued(ull, 5000), valued(ull, 7), false, 5000}, {valued(ull, 6000), valued(ull, 8), false, 6000},
		},
		"the first fails once": {
			{valued(ull, 5000), valued(ull, 7), false, 5000}, {fault, valued(ull, 7), false, none}, {valued(ull, 6000), valued(ull, 7), false, 6000},
		},
		"the first fails at first": {
			{fault, valued(ull, 7), false, none}, {no, valued(ull, 7), false, 7 * 1024}, {no, valued(ull, 8), false, 8 * 1024},
		},
		"the first is refused for a moment": {
			{valued(ull, 5000), valued(ull, 7), false, 5000}, {no, valued(ull, 7), false, none}, {no, valued(ull, 7), false, none},
			{valued(ull, 6000), valued(ull, 7), true, 6000},
		},
		"the first comes late": {
			{no, valued(ull, 5), false, 5 * 1024}, {valued(ull, 9000), valued(ull, 6), true, 6 * 1024}, {valued(ull, 9000), valued(ull, 7), false, 7 * 1024},
		},
		"the first is no number": {
			{valued(ull, 1<<64-1), valued(ull, 7), false, none}, {valued(ull, 5000), valued(ull, 7), false, 5000},
		},
		"neither is there": {{no, no, false, none}, {no, no, false, none}},
	} {
		t.Run(name, func(t *testing.T) {
			d := linked(1, nil)
			n := started(t, newFakeLibrary(d))
			h := n.list()[0]
			for i, s := range steps {
				d.fields(map[uint32]nvml.FieldValue{91: valued(u32, 1), 202: s.first, 138: s.instead})
				if s.forget {
					n.turn(2 * forgetEvery)
				}
				v := linksOf(n.read(h), nvlink)[0].Io[sent]
				got, ok := v.Get()
				if ok != (s.want != none) || ok && got != s.want {
					t.Errorf("read %d: %v (%v), want %v", i, got, v.Why(), s.want)
				}
			}
		})
	}
}

// What the driver is too old for is told to be unsupported of each link, and not left unread.
func TestLinksOfOldDriver(t *testing.T) {
	l := newFakeLibrary(linked(2, map[uint32]nvml.FieldValue{138: valued(ull, 3), 139: valued(ull, 5)}))
	l.driver = "550.54.15"
	out, _ := readOnce(t, l)
	links := linksOf(out, nvlink)
	if len(links) != 2 {
		t.Fatalf("%d links, want 2", len(links))
	}
	for _, x := range links {
		want(t, "sent", x.Io[sent], 3*1024.)
		want(t, "received", x.Io[telemetry.NetworkIoDirectionReceive], 5*1024.)
		want(t, "symbol errors, since R560", x.Errors[telemetry.LinkErrorTypeSymbol], metric.Unsupported)
		want(t, "raw bit errors, since R595", x.BitError[telemetry.LinkBitErrorTypeRaw], metric.Unsupported)
		want(t, "lanes, of which an NVLink tells nothing", x.Width, metric.Unread)
	}
	want(t, "sent, since R555", linksOf(out, pcie)[0].Io[sent], metric.Unsupported)
}

// A byte counter of 32 bits goes round within a second, and says nothing.
func TestNarrowCounters(t *testing.T) {
	out, _ := readOnce(t, newFakeLibrary(linked(0, map[uint32]nvml.FieldValue{197: valued(u32, 12345), 198: valued(ull, 1<<40)})))
	io := linksOf(out, pcie)[0].Io
	want(t, "of 32 bits", io[sent], metric.Unsupported)
	want(t, "of 64 bits", io[telemetry.NetworkIoDirectionReceive], float64(1<<40))
}

func TestBitErrorRates(t *testing.T) {
	for bits, rate := range map[uint64]float64{
		0x10f: 1e-15, 0x20c: 2e-12, 0xf01: 1.5, 0x000: 0, 0x00f: 0, 0x100: 1, 0x9ff: 9e-255, 0x1010f: -1, 1 << 32: -1,
	} {
		out, _ := readOnce(t, newFakeLibrary(linked(1, map[uint32]nvml.FieldValue{220: valued(ull, bits)})))
		v := linksOf(out, nvlink)[0].BitError[telemetry.LinkBitErrorTypeEffective]
		if rate < 0 || rate > 1 {
			want(t, fmt.Sprintf("%#x", bits), v, metric.Implausible)
		} else if got, ok := v.Get(); !ok || got < rate*(1-1e-12) || got > rate*(1+1e-12) {
			t.Errorf("%#x: %v (%v), want %v", bits, got, v.Why(), rate)
		}
	}
}

func TestNVLinkVersions(t *testing.T) {
	for version, generation := range map[uint64]float64{1: 1, 2: 2, 3: 2.2, 4: 3, 5: 3.1, 6: 4, 7: 5, 8: 6} {
		out, _ := readOnce(t, newFakeLibrary(linked(1, map[uint32]nvml.FieldValue{166: valued(u32, version)})))
		want(t, fmt.Sprint("version ", version), linksOf(out, nvlink)[0].Generation, generation)
	}
	for version, why := range map[uint64]*metric.Reason{0: metric.NoData, 9: metric.Implausible, 4711: metric.Implausible} {
		out, _ := readOnce(t, newFakeLibrary(linked(1, map[uint32]nvml.FieldValue{166: valued(u32, version)})))
		want(t, fmt.Sprint("version ", version), linksOf(out, nvlink)[0].Generation, why)
	}
}

// A link that sleeps works.
func TestNVLinkStates(t *testing.T) {
	for state, wanted := range map[uint64]any{0: 0., 1: 1., 2: 1., 3: metric.Implausible, 0xffff_ffff: metric.Implausible} {
		out, _ := readOnce(t, newFakeLibrary(linked(1, map[uint32]nvml.FieldValue{165: valued(u32, state)})))
		up := linksOf(out, nvlink)[0].Up
		switch w := wanted.(type) {
		case float64:
			want(t, fmt.Sprint("state ", state), up, w)
		case *metric.Reason:
			want(t, fmt.Sprint("state ", state), up, w)
		}
	}
}

// No call asks for more fields than other tools do, and none is asked twice.
func TestManyLinks(t *testing.T) {
	const links = 36
	d := linked(links, nil)
	asked, largest := map[string]int{}, 0
	before := d.GetFieldValuesFunc
	d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		largest = max(largest, len(values))
		for _, v := range values {
			asked[fmt.Sprint(v.FieldId, " of ", v.ScopeId)]++
		}
		ret := before(values)
		for i := range values { // each link says which it is
			if values[i].FieldId == 164 {
				values[i].ValueType, values[i].Value[0] = uint32(u32), byte(values[i].ScopeId+1)
			}
		}
		return ret
	}
	l := newFakeLibrary(d)
	l.driver = "610.57.04"
	n := started(t, l)
	h := n.list()[0]
	n.read(h)
	clear(asked)
	all := linksOf(n.read(h), nvlink)
	if len(all) != links {
		t.Fatalf("%d links, want %d", len(all), links)
	}
	for i, x := range all {
		want(t, fmt.Sprint("speed of link ", i), x.Speed, float64(i+1)*1e6)
	}
	if largest != 256 {
		t.Errorf("the largest call was for %d fields, want 256", largest)
	}
	if len(asked) < links*40 {
		t.Errorf("only %d fields were asked", len(asked))
	}
	for field, n := range asked {
		if n != 1 {
			t.Errorf("field %s was asked %d times", field, n)
		}
	}
}

// How many links there are is asked until it is told.
func TestLinksToldLate(t *testing.T) {
	d := linked(0, nil)
	n := started(t, newFakeLibrary(d))
	h := n.list()[0]
	for _, s := range []struct {
		what  string
		ret   nvml.Return
		value nvml.FieldValue
		links int
	}{
		{"the call fails", nvml.ERROR_UNKNOWN, valued(u32, 4), 0},
		{"the entry fails", nvml.SUCCESS, failing(nvml.ERROR_TIMEOUT), 0},
		{"no number", nvml.SUCCESS, valued(u32, 808334905), 0},
		{"told", nvml.SUCCESS, valued(u32, 4), 4},
		{"and never asked again", nvml.SUCCESS, valued(u32, 5), 4},
	} {
		d.fields(map[uint32]nvml.FieldValue{91: s.value, 165: valued(u32, 1), 170: failing(nvml.ERROR_NOT_SUPPORTED)})
		answer := d.GetFieldValuesFunc
		d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
			for _, v := range values {
				d.note("field", " ", v.FieldId)
			}
			if ret := answer(values); ret != nvml.SUCCESS {
				return ret
			}
			return s.ret
		}
		if got := len(linksOf(n.read(h), nvlink)); got != s.links {
			t.Errorf("%s: %d links, want %d", s.what, got, s.links)
		}
	}
	if asked := d.asked["field 91"]; asked != 4 {
		t.Errorf("the links were counted %d times, want 4", asked)
	}
	for _, s := range []struct {
		what  string
		value nvml.FieldValue
		links int
	}{
		{"a board does not lose any", failing(nvml.ERROR_NOT_SUPPORTED), 4}, {"nor while it is at fault", failing(nvml.ERROR_TIMEOUT), 4},
		{"a refusal was of a moment", valued(u32, 6), 6},
	} {
		d.fields(map[uint32]nvml.FieldValue{91: s.value, 165: valued(u32, 1), 170: failing(nvml.ERROR_NOT_SUPPORTED)})
		n.turn(2 * forgetEvery)
		if got := len(linksOf(n.read(h), nvlink)); got != s.links {
			t.Errorf("%s: %d links, want %d", s.what, got, s.links)
		}
	}
}
