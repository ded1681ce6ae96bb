//go:build cgo

package nvml_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// numbers are the readings of one scope that are numbers, by metric and labels.
func numbers[T any](families []telemetry.Family[T], read *T) (told map[string]float64, reasons map[*metric.Reason]int) {
	told, reasons = map[string]float64{}, map[*metric.Reason]int{}
	for _, f := range families {
		for i, row := range f.Rows {
			v := row(read)
			if n, ok := v.Get(); ok {
				told[fmt.Sprintf("%s{%s}", f.Desc.Name, f.Desc.Rows[i].Text())] = n
			} else {
				reasons[v.Why()]++
			}
		}
		if f.Keyed != nil {
			for _, k := range *f.Keyed(read) {
				if n, ok := k.Value.Get(); ok {
					told[fmt.Sprintf("%s{%s}", f.Desc.Name, k.Labels.Text())] = n
				} else {
					reasons[k.Value.Why()]++
				}
			}
		}
	}
	return told, reasons
}

// A device that answers with what drivers in trouble have been seen to invent tells next to nothing,
// and the other is as before.
func TestDriverGarbage(t *testing.T) {
	alone(t, fakenvml.Driver("610"), func(d driver) {
		d.tell("gpus 2", "board everything")
		r := d.open()
		defer d.close(r)
		devices := d.list(r)
		look := func() (out [2]*telemetry.Device) {
			for range 2 {
				for i, x := range devices {
					x.(source.Sampled).Sample(d.Context())
					out[i] = d.read(x)
				}
				time.Sleep(250 * time.Millisecond)
			}
			return out
		}
		before := look()
		d.tell("gpus 2", "board everything", "garbage 0")
		after := look()

		sound, _ := numbers(telemetry.DeviceFamilies, before[0])
		told, reasons := numbers(telemetry.DeviceFamilies, after[0])
		for name, n := range told {
			before, ok := sound[name]
			switch {
			case ok && n == before: // it is no measurement, or was asked once
			case ok && (strings.Contains(name, ".active") || strings.HasPrefix(name, "gpu.sm.")): // the profiler is not its
			case name == "gpu.busy.time{}": // which goes on from before
			case n == 808334905 && (strings.Contains(name, "errors") || name == "gpu.memory.bar1.usage{}"): // a count, and a size, that can be
			case n == -1 && strings.HasPrefix(name, "gpu.temperature.margin"): // a degree over the limit, which can be too
			default:
				d.Errorf("%s = %v", name, n)
			}
		}
		if n := reasons[metric.Implausible]; n < 100 {
			d.Errorf("%d readings are told to be impossible, want all that are measured", n)
		}
		for what, v := range map[string]metric.Value{
			"draw": after[0].Power.Draw, "energy": after[0].Power.Energy, "utilization": after[0].Utilization.Utilization,
			"used memory": after[0].Memory.Usage, "SM clock": after[0].Clock.Frequency[telemetry.ClockTypeSM],
			"chip": after[0].Thermal.Temperature[telemetry.TemperatureSensorCore], "limit": after[0].Power.Limit[telemetry.PowerLimitTypeEnforced],
			"action": after[0].Repair.RecoveryAction[telemetry.RecoveryActionUnknown], "cause": after[0].Throttle.Reason[telemetry.ThrottleCauseSWThermal],
			"mode": after[0].Mode.ComputeMode[telemetry.ComputeModeUnknown],
		} {
			if v.Why() != metric.Implausible {
				n, _ := v.Get()
				d.Errorf("%s = %v (%v), want it told to be impossible", what, n, v.Why())
			}
		}
		for i := range after[0].Links {
			sound, _ := numbers(telemetry.LinkFamilies, &before[0].Links[i].Read)
			told, _ := numbers(telemetry.LinkFamilies, &after[0].Links[i].Read)
			for name, n := range told {
				if before, ok := sound[name]; (!ok || n != before) && n != 808334905 {
					d.Errorf("%s: %s = %v", after[0].Links[i].Labels.Text(), name, n)
				}
			}
		}

		sound, lacking := numbers(telemetry.DeviceFamilies, before[1])
		told, reasons = numbers(telemetry.DeviceFamilies, after[1])
		for name := range sound {
			if _, ok := told[name]; !ok {
				d.Errorf("the other has lost its %s", name)
			}
		}
		if n := reasons[metric.Implausible]; n != 0 || len(told) < len(sound) {
			d.Errorf("of the other %d are told to be impossible, and %v are missing, before %v", n, reasons, lacking)
		}

		// Sound again, it is believed again.
		d.tell("gpus 2", "board everything")
		look()
		_, reasons = numbers(telemetry.DeviceFamilies, look()[0])
		if n := reasons[metric.Implausible]; n != 0 {
			d.Errorf("when all is well again, %d are told to be impossible", n)
		}
		d.want("draw", look()[0].Power.Draw, 300)
	})
}
