//go:build cgo

package nvml_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// tally counts the readings of one scope that are there, and those nobody looked at, of what the
// spec says NVML gives.
func tally[T any](families []telemetry.Family[T], read *T) (numbers int, unread []string) {
	for _, f := range families {
		if !slices.Contains(f.Desc.Sources, "nvml") {
			continue
		}
		for _, row := range f.Rows {
			v := row(read)
			if _, ok := v.Get(); ok {
				numbers++
			} else if v.Why() == metric.Unread && !slices.Contains(unread, f.Desc.Name) {
				unread = append(unread, f.Desc.Name)
			}
		}
		if f.Keyed != nil {
			numbers += len(*f.Keyed(read))
		}
	}
	return numbers, unread
}

// Each generation of drivers is read in full, as far as it goes: a call that it lacks ends the
// process, and with it this test. Nothing is held of it in the end.
func TestGenerations(t *testing.T) {
	// Of boards that have everything: how many numbers are told of a device, of one that is
	// partitioned, of the links and of the partitions; and how many links and processes there are.
	for generation, want := range map[string]struct {
		numbers          [4]int
		links, processes int
	}{
		"450": {[4]int{94, 83, 44, 12}, 1 + 18, 1}, // MPS has a list of its own since R470
		"535": {[4]int{146, 133, 220, 50}, 1 + 18 + 10, 2},
		"550": {[4]int{163, 150, 220, 50}, 1 + 18 + 10, 2},
		"570": {[4]int{172, 159, 726, 50}, 1 + 18 + 10, 2},
		"580": {[4]int{180, 167, 756, 50}, 1 + 18 + 10, 2},
		"590": {[4]int{182, 169, 756, 50}, 1 + 18 + 10, 2},
		"595": {[4]int{184, 169, 810, 50}, 1 + 18 + 10, 2},
		"610": {[4]int{185, 170, 810, 50}, 1 + 18 + 10, 2},
	} {
		t.Run(generation, func(t *testing.T) {
			alone(t, fakenvml.Driver(generation), func(d driver) {
				d.tell("gpus 2", "board everything", "mig 1 on 1c.3g.40gb:2:0,-,1c.3g.40gb:2:1,1g.10gb:9:0",
					"process 0 10 500 30", "process 0 10 400 graphics", "process 0 20 300 mps", "process 1 30 200 9 0", "xid 0 79", "throttle 0 0x4")
				r := d.open()
				devices := d.list(r)
				for range 3 {
					for _, x := range devices {
						x.(source.Sampled).Sample(d.Context())
						d.read(x)
					}
					time.Sleep(250 * time.Millisecond) // more than the driver needs for an average, and for a sample
				}
				var got [4]int
				var unread []string
				first := d.read(devices[0])
				for deadline := time.Now().Add(10 * time.Second); len(first.XID.Errors) == 0 && time.Now().Before(deadline); {
					first = d.read(devices[0])
				}
				got[0], unread = tally(telemetry.DeviceFamilies, first)
				// NVML sets no such clock, tells no such mean, has no such sensor and counts no such time but for some.
				if !slices.Equal(unread, []string{"gpu.clock.application", "gpu.power.average", "gpu.temperature", "gpu.throttle.time"}) {
					d.Errorf("nobody looked at %v", unread)
				}
				second := d.read(devices[1])
				got[1], _ = tally(telemetry.DeviceFamilies, second)
				for i := range first.Links {
					n, _ := tally(telemetry.LinkFamilies, &first.Links[i].Read)
					got[2] += n
				}
				for i := range second.Partitions {
					n, _ := tally(telemetry.PartitionFamilies, &second.Partitions[i].Read)
					got[3] += n
				}
				if n := len(second.Partitions); n != 4 { // three instances, and one GPU instance of two of them
					d.Errorf("%d partitions, want 4", n)
				}
				if len(first.Links) != want.links || len(first.Processes) != want.processes {
					d.Errorf("%d links and %d processes, want %d and %d", len(first.Links), len(first.Processes), want.links, want.processes)
				}
				if got != want.numbers {
					d.Errorf("numbers of a device, of a partitioned one, of links and of partitions: %v, want %v", got, want.numbers)
				}
				d.close(r)
				stats := fakenvml.Stats(d, os.Getenv("FAKENVML_STATS"))
				for _, held := range []string{"users", "samples", "sets"} {
					if n := stats[held]; n != 0 {
						d.Errorf("%d %s are still held", n, held)
					}
				}
			})
		})
	}
}
