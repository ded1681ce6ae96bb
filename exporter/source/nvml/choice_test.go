//go:build cgo

package nvml

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// calls are what each group asks, beyond what says who the device is.
var calls = map[string]string{
	"clock":       "GetClockInfo GetMaxClockInfo",
	"ecc":         "GetFieldValues",
	"fabric":      "GetFieldValues",
	"memory":      "GetMemoryInfo_v2",
	"power":       "GetFieldValues GetPowerUsage GetTotalEnergyConsumption",
	"repair":      "GetFieldValues",
	"thermal":     "GetFieldValues GetMarginTemperature GetTemperature GetTemperatureThreshold",
	"throttle":    "GetCurrentClocksEventReasons GetFieldValues GetSupportedClocksEventReasons",
	"utilization": "GetDecoderUtilization GetEncoderUtilization GetJpgUtilization GetOfaUtilization GetSamples GetUtilizationRates",
	"xid":         "GetSupportedEventTypes RegisterEvents",
}

const identity = "GetArchitecture GetBoardPartNumber GetCudaComputeCapability GetName GetPciInfo GetSerial GetUUID GetVbiosVersion"

// With everything but one group off, only that group's calls are made.
func TestWhatIsOffIsNotAsked(t *testing.T) {
	of := map[string]bool{}
	for _, f := range telemetry.DeviceFamilies {
		if slices.Contains(f.Desc.Sources, "nvml") {
			of[f.Desc.Group] = true
		}
	}
	if got, want := slices.Sorted(maps.Keys(of)), slices.Sorted(maps.Keys(calls)); !slices.Equal(got, want) {
		t.Fatalf("groups read are %v, known here %v", got, want)
	}
	for group, want := range calls {
		device := answering("GPU-1")
		r, err := open(newFakeLibrary(device), newArchive(), choose(func(d *metric.Desc) bool { return d.Group == group }))
		if err != nil {
			t.Fatal(err)
		}
		devices, err := r.Devices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		devices[0].(*handle).Sample(t.Context())
		if why := devices[0].Read(t.Context(), new(telemetry.Device)); why != nil {
			t.Fatal(why.Text)
		}
		closed(t, r)
		if got := askedOf(device); got != want {
			t.Errorf("%s asks %s\nwant %s", group, got, want)
		}
	}
}

// askedOf names the calls made but those of the identity.
func askedOf(device *fakeDevice) string {
	names := map[string]bool{}
	for question := range device.asked {
		name, _, _ := strings.Cut(fmt.Sprint(question), "Func")
		if !slices.Contains(strings.Fields(identity), name) {
			names[name] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), " ")
}

// A metric of numbered fields that is off is left out of the batch.
func TestFieldsThatAreOffAreNotAsked(t *testing.T) {
	c := choose(func(d *metric.Desc) bool { return d.Name == "gpu.power.limit" })
	if len(c.fields) != 5 {
		t.Errorf("%d fields for five limits", len(c.fields))
	}
	for _, f := range c.fields {
		if f.metric != "gpu.power.limit" {
			t.Errorf("field %d of %s is asked", f.id, f.metric)
		}
	}
}
