package nvml

import (
	"slices"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// The numbers of the throttle times moved twice; asked for in the wrong driver, they are switches.
func TestFieldsOfDriver(t *testing.T) {
	for version, want := range map[string][]uint32{
		"535.247.01": {74, 76},
		"570.124.06": {74, 76},
		"575.51.03":  {74, 76, 251, 252, 253},
		"580.65.06":  {74, 76, 251, 252, 253},
		"589.99":     {74, 76, 251, 252, 253},
		"590.44.01":  {74, 76, 269, 270, 271},
		"610.10":     {74, 76, 269, 270, 271},
		"":           {74, 76},
		"unknown":    {74, 76},
	} {
		var out telemetry.Device
		times := map[*metric.Value]bool{}
		for i := range out.Throttle.Time {
			times[&out.Throttle.Time[i]] = true
		}
		var got []uint32
		for _, f := range deviceFields {
			if f.to != nil && times[f.to(&out)] && f.of(major(version)) {
				got = append(got, f.id)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: asked for %v, want %v", version, got, want)
		}
	}
}

// A driver whose version can not be told is asked nothing that depends on it.
func TestFieldOf(t *testing.T) {
	for _, c := range []struct {
		f      field[telemetry.Device]
		driver int
		want   bool
	}{
		{field[telemetry.Device]{}, 0, true}, {field[telemetry.Device]{}, 570, true},
		{field[telemetry.Device]{last: 574}, 0, false}, {field[telemetry.Device]{last: 574}, 574, true}, {field[telemetry.Device]{last: 574}, 575, false},
		{field[telemetry.Device]{first: 575}, 0, false}, {field[telemetry.Device]{first: 575}, 574, false}, {field[telemetry.Device]{first: 575}, 575, true},
		{field[telemetry.Device]{first: 575, last: 589}, 589, true}, {field[telemetry.Device]{first: 575, last: 589}, 590, false},
	} {
		if got := c.f.of(c.driver); got != c.want {
			t.Errorf("%d to %d, driver %d: %v, want %v", c.f.first, c.f.last, c.driver, got, c.want)
		}
	}
}
