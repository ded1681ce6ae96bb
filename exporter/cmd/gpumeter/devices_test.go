package main

import (
	"slices"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func TestChooseDevices(t *testing.T) {
	devices := []*telemetry.Identity{
		{Index: 0, UUID: "GPU-aa", PCI: "0000:10:00.0"}, {Index: 1, UUID: "GPU-ab", PCI: "0000:14:00.0"}, {Index: 10, UUID: "GPU-b", PCI: "0001:10:00.0"},
	}
	s := &snapshot.Snapshot{Devices: make([]snapshot.Device, len(devices)+1)}
	for i, id := range devices {
		s.Devices[i].Identity = id
		s.Devices[i].Read.Presence.State[telemetry.StateLost].Set(1)
	}
	missing := &s.Devices[len(devices)]
	missing.Identity = &telemetry.Identity{Index: 8}
	missing.Read.Presence.State[telemetry.StateMissing].Set(1)
	for _, c := range []struct{ patterns, chosen, unmet []string }{
		{nil, []string{"GPU-aa", "GPU-ab", "GPU-b"}, nil},
		{[]string{"1"}, []string{"GPU-ab"}, nil},
		{[]string{"GPU-a*"}, []string{"GPU-aa", "GPU-ab"}, nil},
		{[]string{"0000:1?:00.0", "7"}, []string{"GPU-aa", "GPU-ab"}, []string{"7"}},
		{[]string{"8", "GPU-b"}, []string{"GPU-b"}, []string{"8"}}, // 8 is missing
	} {
		choice, err := chooseDevices(c.patterns)
		if err != nil {
			t.Fatal(err)
		}
		var chosen []string
		for _, id := range devices {
			if choice.has(id) {
				chosen = append(chosen, id.UUID)
			}
		}
		if !slices.Equal(chosen, c.chosen) || !slices.Equal(choice.unmet(s), c.unmet) {
			t.Errorf("%v chooses %v, unmet %v; want %v, %v", c.patterns, chosen, choice.unmet(s), c.chosen, c.unmet)
		}
	}
	if _, err := chooseDevices([]string{"[a"}); err == nil {
		t.Error("a broken pattern was let through")
	}
}
