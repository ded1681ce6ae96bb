package snapshot

import (
	"testing"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// An index belongs to a UUID, whatever slot its board stands in.
func TestBoardsInOtherSlots(t *testing.T) {
	r := registry{sources: []string{"nvml"}}
	id := func(uuid, pci string, index int) *telemetry.Identity {
		return &telemetry.Identity{UUID: uuid, PCI: pci, Index: index, Vendor: "nvidia"}
	}
	r.meet("nvml", id("a", "0000:01:00.0", 0))
	r.meet("nvml", id("b", "0000:02:00.0", 1))
	for _, c := range []struct {
		uuid, pci string
		index     int
		want      int
	}{
		{"b", "0000:01:00.0", 0, 1}, // the bus is numbered anew
		{"a", "0000:02:00.0", 1, 0},
		{"c", "0000:01:00.0", 0, 2}, // a board is replaced
		{"b", "0000:03:00.0", 0, 1}, // and put into another slot
	} {
		k := r.meet("nvml", id(c.uuid, c.pci, c.index))
		if k.identity.UUID != c.uuid || k.identity.Index != c.want {
			t.Errorf("%s at %s is %s with index %d, want %d", c.uuid, c.pci, k.identity.UUID, k.identity.Index, c.want)
		}
	}
	if len(r.known) != 3 {
		t.Errorf("%d devices, want 3", len(r.known))
	}
}

// Sources that know a device by other names meet at its PCI address; who it is does not depend on
// which of them was quicker.
func TestIdentityOfTwoSources(t *testing.T) {
	first := &telemetry.Identity{UUID: "GPU-1", PCI: "0000:01:00.0", Vendor: "nvidia", Model: "H100"}
	second := &telemetry.Identity{UUID: "0x1", PCI: "0000:01:00.0", Vendor: "nvidia", Model: "GH100"}
	unnamed := &telemetry.Identity{PCI: "0000:01:00.0"}
	for _, order := range [][]string{{"nvml", "dcgm", "pci"}, {"pci", "dcgm", "nvml"}, {"dcgm", "nvml", "pci", "dcgm"}} {
		r := registry{sources: []string{"nvml", "dcgm", "pci"}}
		var k *known
		for _, source := range order {
			k = r.meet(source, map[string]*telemetry.Identity{"nvml": first, "dcgm": second, "pci": unnamed}[source])
		}
		if len(r.known) != 1 || *k.identity != *first {
			t.Errorf("%v: %d devices, %+v", order, len(r.known), k.identity)
		}
	}
}

// A sick driver that no longer tells the model does not change who the counters are of.
func TestIdentityIsNotForgotten(t *testing.T) {
	r := registry{sources: []string{"nvml"}}
	before := r.meet("nvml", &telemetry.Identity{UUID: "a", PCI: "0000:01:00.0", Vendor: "nvidia", Model: "H100"}).labels.Text()
	old := r.known[0].identity
	after := r.meet("nvml", &telemetry.Identity{UUID: "a", DriverVersion: "580"})
	if after.labels.Text() != before || after.identity.PCI != "0000:01:00.0" || after.identity.DriverVersion != "580" {
		t.Errorf("labels %s, were %s; %+v", after.labels.Text(), before, after.identity)
	}
	if old.DriverVersion != "" {
		t.Error("an identity in a picture already taken has changed")
	}
}

// A source that does not know UUIDs means the board that was last seen at an address, and does
// not take away its UUID.
func TestSourceWithoutUUIDs(t *testing.T) {
	r := registry{sources: []string{"pci", "nvml"}}
	r.meet("nvml", &telemetry.Identity{UUID: "a", PCI: "0000:01:00.0"})
	r.meet("nvml", &telemetry.Identity{UUID: "b", PCI: "0000:01:00.0"})
	if k := r.meet("pci", &telemetry.Identity{PCI: "0000:01:00.0", Model: "M"}); k.identity.UUID != "b" || k.identity.Model != "M" {
		t.Errorf("met %+v", k.identity)
	}
}

// Indices are the driver's, and each vendor has its own.
func TestIndexIsOfTheVendor(t *testing.T) {
	r := registry{sources: []string{"nvml", "amdgpu"}}
	r.meet("nvml", &telemetry.Identity{UUID: "a", Vendor: "nvidia"})
	if k := r.meet("amdgpu", &telemetry.Identity{UUID: "b", Vendor: "amd"}); k.identity.Index != 0 {
		t.Errorf("the first of another vendor has index %d", k.identity.Index)
	}
}

// One answer is enough; else late outranks failed, which outranks lost, in whatever order the
// sources say so.
func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		why  []*metric.Reason
		want telemetry.State
	}{
		{nil, telemetry.StateLost},
		{[]*metric.Reason{metric.Lost}, telemetry.StateLost},
		{[]*metric.Reason{metric.Lost, metric.Failed}, telemetry.StateFailed},
		{[]*metric.Reason{metric.Failed, metric.Lost}, telemetry.StateFailed},
		{[]*metric.Reason{metric.Late, metric.Failed}, telemetry.StateLate},
		{[]*metric.Reason{metric.Failed, metric.Late}, telemetry.StateLate},
		{[]*metric.Reason{metric.Late, nil, metric.Failed}, telemetry.StateOK},
	} {
		var parts []part
		for _, why := range c.why {
			parts = append(parts, part{why: why})
		}
		if got := answer(parts); got != c.want {
			t.Errorf("%v: %v, want %v", c.why, got, c.want)
		}
	}
}

// What a device nobody asked is called goes by why, when the round began or now.
func TestStateOfWhatWasNotAsked(t *testing.T) {
	r := registry{sources: []string{"nvml"}}
	k := r.meet("nvml", &telemetry.Identity{UUID: "a"})
	r.leave(k)
	let := absence{sources: map[string]bool{"nvml": true}}
	for name, c := range map[string]struct {
		slots     []slot
		then, now absence
		want      telemetry.State
	}{
		"gone":                       {nil, absence{}, absence{}, telemetry.StateLost},
		"released":                   {nil, absence{all: true}, absence{}, telemetry.StateReleased},
		"released since":             {nil, absence{}, absence{all: true}, telemetry.StateReleased},
		"being opened again":         {nil, absence{}, let, telemetry.StateReleased},
		"of another source":          {nil, absence{sources: map[string]bool{"sim": true}}, absence{}, telemetry.StateLost},
		"hangs":                      {nil, absence{all: true, hung: map[*known]bool{k: true}}, absence{all: true}, telemetry.StateLate},
		"released and taken back":    {[]slot{{worker: &worker{source: "nvml", known: k}, reading: reading{why: metric.Released}}}, absence{}, absence{}, telemetry.StateReleased},
		"asked before it was let go": {[]slot{{worker: &worker{source: "nvml", known: k}, reading: reading{why: metric.Late}}}, absence{}, let, telemetry.StateLate},
	} {
		d := r.compose(c.slots, c.then, c.now)
		if got := state(t, &d[0]); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
