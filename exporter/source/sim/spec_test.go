package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source/sourcetest"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// longEnough is a time after which every sort of fault has happened to a board, and jobs are at work.
const longEnough = 200*24*time.Hour + 20*time.Minute

// reads is what was read of each thing of a scope, on all boards.
type reads struct {
	devices    []*telemetry.Device
	partitions []*telemetry.Partition
	links      []*telemetry.Link
	processes  []*telemetry.Process
	engines    []*telemetry.Engine
}

func readAll(t *testing.T, node string) (all reads) {
	t.Helper()
	at, devices := start(t, node, 1)
	at.moveTo(longEnough)
	for _, d := range devices {
		x := read(t, d)
		all.devices = append(all.devices, x)
		all.partitions = parts(all.partitions, x.Partitions)
		all.links = parts(all.links, x.Links)
		all.processes = parts(all.processes, x.Processes)
	}
	c, r, _ := startEngines(t, node, 1)
	c.moveTo(longEnough)
	all.engines = parts(all.engines, engines(t, r))
	return all
}

func parts[T any](all []*T, more []telemetry.Part[T]) []*T {
	for i := range more {
		all = append(all, &more[i].Read)
	}
	return all
}

// union has each number that any of the readings has.
func union[T any](families []telemetry.Family[T], all []*T) *T {
	u := new(T)
	for _, x := range all {
		for _, f := range families {
			for _, row := range f.Rows {
				if _, has := row(u).Get(); !has {
					*row(u) = *row(x)
				}
			}
			if f.Keyed != nil && len(*f.Keyed(u)) == 0 {
				*f.Keyed(u) = *f.Keyed(x)
			}
			if f.Histograms != nil && len(*f.Histograms(u)) == 0 {
				*f.Histograms(u) = *f.Histograms(x)
			}
		}
	}
	return u
}

// What the spec lists for sim is read, and nothing else, on the boards of a mixed node together.
func TestSpecIsRead(t *testing.T) {
	all := readAll(t, "mixed")
	sourcetest.SpecIsRead(t, "sim", telemetry.DeviceFamilies, union(telemetry.DeviceFamilies, all.devices))
	sourcetest.SpecIsRead(t, "sim", telemetry.PartitionFamilies, union(telemetry.PartitionFamilies, all.partitions))
	sourcetest.SpecIsRead(t, "sim", telemetry.LinkFamilies, union(telemetry.LinkFamilies, all.links))
	sourcetest.SpecIsRead(t, "sim", telemetry.ProcessFamilies, union(telemetry.ProcessFamilies, all.processes))
	sourcetest.SpecIsRead(t, "sim", telemetry.EngineFamilies, union(telemetry.EngineFamilies, all.engines))
}

// It has a number on some board, and a reason on every other.
func TestMixedHasEveryMetric(t *testing.T) {
	all := readAll(t, "mixed")
	hasEveryMetric(t, telemetry.DeviceFamilies, all.devices)
	hasEveryMetric(t, telemetry.PartitionFamilies, all.partitions)
	hasEveryMetric(t, telemetry.LinkFamilies, all.links)
	hasEveryMetric(t, telemetry.ProcessFamilies, all.processes)
	hasEveryMetric(t, telemetry.EngineFamilies, all.engines)
}

func hasEveryMetric[T any](t *testing.T, families []telemetry.Family[T], all []*T) {
	t.Helper()
	u := union(families, all)
	for _, f := range families {
		if !slices.Contains(f.Desc.Sources, "sim") {
			continue
		}
		given := f.Keyed != nil && len(*f.Keyed(u)) > 0 || f.Histograms != nil && len(*f.Histograms(u)) > 0
		for i, row := range f.Rows {
			_, has := row(u).Get()
			given = given || has
			for _, x := range all {
				if row(x).Why() == metric.Unread {
					t.Errorf("%s{%s} is not read of a board", f.Desc.Name, f.Desc.Rows[i].Text())
					break
				}
			}
		}
		if !given {
			t.Errorf("%s has a number on no board", f.Desc.Name)
		}
	}
}
