//go:build cgo

package nvml

import (
	"log/slog"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// refusing is a device whose power, clocks and numbered fields return what ret holds.
func refusing(ret *nvml.Return) *fakeDevice {
	d := answering("GPU-0")
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 300_000, *ret }
	d.GetClockInfoFunc = func(nvml.ClockType) (uint32, nvml.Return) { return 1000, *ret }
	d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		for i := range values {
			zero(&values[i])
			values[i].NvmlReturn = uint32(*ret)
		}
		return nvml.SUCCESS
	}
	return d
}

// present counts the readings of a device that have a value.
func present(d *telemetry.Device) (n int) {
	for _, f := range telemetry.DeviceFamilies {
		for _, row := range f.Rows {
			if _, ok := row(d).Get(); ok {
				n++
			}
		}
	}
	return n
}

func TestRefusal_OnePassingNotSupportedCostsOneReading(t *testing.T) {
	ret := nvml.SUCCESS
	n := started(t, newFakeLibrary(refusing(&ret)))
	h := n.list()[0]
	before := present(n.read(h))
	for _, refused := range []nvml.Return{nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_INVALID_ARGUMENT} {
		ret = refused
		for range maxRefusals - 1 {
			want(t, "power while it is refused", n.read(h).Power.Draw, reasonOf(refused))
		}
		ret = nvml.SUCCESS
		if after := present(n.read(h)); after != before {
			t.Errorf("%d readings after %d refusals (%v), want the %d of before", after, maxRefusals-1, refused, before)
		}
	}
}

func reasonOf(ret nvml.Return) *metric.Reason {
	why, _ := reason(ret)
	return why
}

func TestRefusal_LapsedCallsAreRetriedAfterAMinute(t *testing.T) {
	ret := nvml.SUCCESS
	logged := new(lines)
	n := started(t, newFakeLibrary(refusing(&ret)))
	n.log = slog.New(slog.NewTextHandler(logged, nil))
	h := n.list()[0]
	before := present(n.read(h))
	ret = nvml.ERROR_NOT_SUPPORTED
	for range maxRefusals + 2 {
		n.read(h)
	}
	asked := func() int { return len(h.refused()) }
	if asked() == 0 {
		t.Fatal("no call is off after refusals in a row")
	}
	ret = nvml.SUCCESS
	n.turn(firstRetry - time.Second)
	if present(n.read(h)) == before {
		t.Error("the calls are made again before a minute has passed")
	}
	n.turn(time.Second)
	if after := present(n.read(h)); after != before || asked() != 0 {
		t.Errorf("%d readings a minute after the refusals, want %d; still off: %v", after, before, h.refused())
	}
	for _, line := range []string{"refuses readings", "gives the refused readings again"} {
		if n := logged.count(line); n != 1 {
			t.Errorf("%q is logged %d times, want once", line, n)
		}
	}
}

func TestRefusal_PausesDoubleWhileTheDriverRefuses(t *testing.T) {
	ret := nvml.SUCCESS
	d := refusing(&ret)
	n := started(t, newFakeLibrary(d))
	h := n.list()[0]
	n.read(h)
	ret = nvml.ERROR_NOT_SUPPORTED
	for range maxRefusals {
		n.read(h)
	}
	calls := 0
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { calls++; return 0, ret }
	var at []int
	for second := range 8 * 60 {
		n.turn(time.Second)
		if before := calls; n.read(h) != nil && calls > before {
			at = append(at, second+1)
		}
	}
	if want := []int{60, 180, 420}; len(at) != 3 || at[0] != want[0] || at[1] != want[1] || at[2] != want[2] {
		t.Errorf("the refused call is made after %v seconds, want %v", at, want)
	}
}

// What was never supported is still asked for once in ten minutes.
func TestRefusal_UnsupportedFromTheStartIsAskedOnce(t *testing.T) {
	ret := nvml.ERROR_NOT_SUPPORTED
	d := refusing(&ret)
	calls := 0
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { calls++; return 0, ret }
	n := started(t, newFakeLibrary(d))
	h := n.list()[0]
	for range 300 {
		n.read(h)
		n.turn(time.Second)
	}
	if calls != 1 {
		t.Errorf("%d calls of what the device does not support in five minutes, want 1", calls)
	}
}

// refused lists the calls of a device that are off.
func (h *handle) refused() (out []string) {
	for q := range h.answers.of {
		for v := range h.answers.of[q] {
			if h.answers.of[q][v].off {
				out = append(out, symbols[q])
			}
		}
	}
	return out
}
