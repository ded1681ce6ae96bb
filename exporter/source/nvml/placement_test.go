//go:build cgo

package nvml

import (
	"fmt"
	"slices"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// placed wants the places of the partitions in the order they are told; empty: it is not told.
func (p profiled) placed(what string, want ...string) {
	p.Helper()
	var got []string
	for _, x := range p.read(p.h).Partitions {
		place := ""
		for _, k := range x.Read.Partitions.Info {
			place = k.Labels.Get("gpu_partition_placement")
		}
		got = append(got, place)
	}
	if !slices.Equal(got, want) {
		p.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// Where instances lie is told once of those that share a GPU instance, and asked once of each.
func TestPlacement(t *testing.T) {
	p, d := partitioned(t, sized("MIG-a", "1c.3g.40gb", 2, 0), sized("MIG-b", "2c.3g.40gb", 2, 1), sized("MIG-c", "1g.10gb", 9, 0))
	d.placement = func(id int) (nvml.GpuInstanceInfo, nvml.Return) {
		d.note("place")
		return nvml.GpuInstanceInfo{ProfileId: uint32(id), Placement: nvml.GpuInstancePlacement{Start: 4, Size: uint32(id)}}, nvml.SUCCESS
	}
	d.cut(sized("MIG-a", "1c.3g.40gb", 2, 0), sized("MIG-b", "2c.3g.40gb", 2, 1), sized("MIG-c", "1g.10gb", 9, 0))
	for range 3 {
		p.placed("places", "4:2", "", "", "4:9")
	}
	for _, x := range p.read(p.h).Partitions {
		for _, k := range x.Read.Partitions.Info {
			if id := x.Labels.Get("gpu_partition_id"); k.Labels.Get("gpu_partition_profile_id") != id[:1] {
				t.Errorf("the profile of %s is %s", id, k.Labels.Text())
			}
			want(t, "info", k.Value, 1.)
		}
	}
	if n := d.asked["place"]; n != 3 {
		t.Errorf("asked %d times where three instances lie", n)
	}
}

// A driver that tells it to root alone, or to nobody, is not asked again at each read.
func TestPlacementIsRefused(t *testing.T) {
	for _, ret := range []nvml.Return{nvml.ERROR_NO_PERMISSION, nvml.ERROR_NOT_SUPPORTED} {
		t.Run(fmt.Sprint(ret), func(t *testing.T) {
			p, d := partitioned(t)
			asked := 0
			d.placement = func(int) (nvml.GpuInstanceInfo, nvml.Return) {
				asked++
				return nvml.GpuInstanceInfo{}, ret
			}
			d.cut(sized("MIG-a", "1g.10gb", 7, 0))
			for range 3 {
				p.placed("refused", "")
			}
			if asked != 1 {
				t.Errorf("asked %d times, want once", asked)
			}
		})
	}
}
