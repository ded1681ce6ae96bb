//go:build cgo

package nvml

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// sample is a percentage at a time in seconds.
func sample(at float64, load uint32) nvml.Sample {
	s := nvml.Sample{TimeStamp: uint64(math.Round(at * 1e6))}
	binary.NativeEndian.PutUint32(s.SampleValue[:], load)
	return s
}

func TestBusy(t *testing.T) {
	const t0 = 1_700_000_000.
	for _, c := range []struct {
		name    string
		batches [][]nvml.Sample
		want    float64
	}{
		{"the first batch is from before the exporter", [][]nvml.Sample{{sample(t0, 100), sample(t0+1, 100)}}, 0},
		{"value times span", [][]nvml.Sample{
			{sample(t0, 0)}, {sample(t0+0.5, 100), sample(t0+1.5, 40)}, {sample(t0+2, 50)},
		}, 0.5 + 0.4 + 0.25},
		{"old samples again", [][]nvml.Sample{
			{sample(t0, 0)}, {sample(t0+1, 100)}, {sample(t0+0.5, 100), sample(t0+1, 100), sample(t0+2, 100)},
		}, 2},
		{"trailing zeros", [][]nvml.Sample{{sample(t0, 0), {}}, {sample(t0+1, 100), {}, {}}}, 1},
		{"nothing but zeros first", [][]nvml.Sample{{{}, {}}, {sample(t0, 100), sample(t0+1, 100)}, {sample(t0+2, 100)}}, 1},
		{"a hole is not filled", [][]nvml.Sample{
			{sample(t0, 0)}, {sample(t0+60, 100), sample(t0+61, 100)},
		}, 1},
		{"an impossible sample is left out", [][]nvml.Sample{
			{sample(t0, 0)}, {sample(t0+1, 808334905), sample(t0+2, 100)},
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b busy
			got := 0.
			for _, batch := range c.batches {
				more, _ := b.add(nvml.VALUE_TYPE_UNSIGNED_INT, batch)
				got += more
			}
			if math.Abs(got-c.want) > 1e-9 {
				t.Errorf("%v s, want %v", got, c.want)
			}
		})
	}
}

func TestBusyTime(t *testing.T) {
	var samples []nvml.Sample
	ret := nvml.SUCCESS
	var asked []uint64
	d := answering("GPU-0")
	d.GetSamplesFunc = func(of nvml.SamplingType, since uint64) (nvml.ValueType, []nvml.Sample, nvml.Return) {
		if of != nvml.GPU_UTILIZATION_SAMPLES {
			return 0, nil, nvml.ERROR_NOT_SUPPORTED
		}
		asked = append(asked, since)
		return nvml.VALUE_TYPE_UNSIGNED_INT, samples, ret
	}
	l := newFakeLibrary(d)
	past := newArchive()
	r, err := open(l, config(), past, everything())
	if err != nil {
		t.Fatal(err)
	}
	devices, err := r.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := devices[0].(*handle)
	busy := func() metric.Value {
		var out telemetry.Device
		if why := h.Read(t.Context(), &out); why != nil {
			t.Error(why)
		}
		return out.Utilization.BusyTime
	}

	ret = nvml.ERROR_NOT_FOUND
	want(t, "before the first sample", busy(), metric.NoData)
	ret, samples = nvml.SUCCESS, []nvml.Sample{sample(100, 100), sample(101, 100)}
	want(t, "after the first batch", busy(), 0.)
	samples = []nvml.Sample{sample(102, 50)}
	h.Sample(t.Context())
	samples = []nvml.Sample{sample(103, 100)}
	want(t, "sampled between and read", busy(), 1.5)
	if last := asked[len(asked)-1]; last != 102e6 {
		t.Errorf("asked for samples after %d, want 102000000", last)
	}
	ret = nvml.ERROR_NOT_FOUND
	want(t, "nothing new", busy(), 1.5)
	ret, samples = nvml.SUCCESS, []nvml.Sample{sample(104, 808334905)}
	want(t, "nothing but nonsense", busy(), metric.Implausible)
	ret = nvml.ERROR_GPU_IS_LOST
	if why := h.Read(t.Context(), new(telemetry.Device)); why != metric.Lost {
		t.Errorf("lost: %v", why)
	}
	ret = nvml.ERROR_NOT_SUPPORTED
	want(t, "MIG", busy(), metric.Unsupported)

	// Opened again, the count goes on, and the time between is not counted.
	closed(t, r)
	ret, samples = nvml.SUCCESS, []nvml.Sample{sample(200, 100), sample(201, 100)}
	if r, err = open(l, config(), past, everything()); err != nil {
		t.Fatal(err)
	}
	defer closed(t, r)
	if devices, err = r.Devices(t.Context()); err != nil {
		t.Fatal(err)
	}
	h = devices[0].(*handle)
	want(t, "opened again", busy(), 1.5)
	samples = []nvml.Sample{sample(202, 100)}
	want(t, "a second later", busy(), 2.5)
}
