//go:build cgo

package nvml

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// partitioned is one device that is cut as a test says. A GPU instance is as busy as its number says
// in percent, and an average over samples of two instances is a fault of the reader's.
func partitioned(t *testing.T, instances ...*fakeDevice) (profiled, *fakeDevice) {
	t.Helper()
	d := answering("GPU-0")
	d.cut(instances...)
	l := newFakeLibrary(d)
	of := map[nvml.GpmSample]int{}
	d.GpmMigSampleGetFunc = func(gpu int, s nvml.GpmSample) nvml.Return {
		d.note("sample of", " ", gpu)
		of[s] = gpu
		return nvml.SUCCESS
	}
	d.GpmSampleGetFunc = func(s nvml.GpmSample) nvml.Return {
		of[s] = 99
		return nvml.SUCCESS
	}
	l.gpm = func(ask *nvml.GpmMetricsGetType) nvml.Return {
		if of[ask.Sample1] != of[ask.Sample2] || ask.Sample1 == ask.Sample2 {
			t.Errorf("an average over samples of instances %d and %d", of[ask.Sample1], of[ask.Sample2])
		}
		for i := range ask.NumMetrics {
			ask.Metrics[i].Value, ask.Metrics[i].NvmlReturn = float64(of[ask.Sample2]), uint32(nvml.SUCCESS)
		}
		return nvml.SUCCESS
	}
	n := started(t, l)
	return profiled{n, n.list()[0], l}, d
}

// sized is an instance of 16 multiprocessors and 10 GB for each slice.
func sized(uuid, profile string, gpu, work int) *fakeDevice {
	f := part(uuid, profile, gpu, work)
	var slices int
	if _, err := fmt.Sscanf(instanceProfile(profile), "%dg.", &slices); err != nil {
		panic(err)
	}
	f.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
		f.note("memory")
		total := uint64(slices) * 10 << 30
		return nvml.Memory_v2{Total: total, Used: 1 << 30, Free: total - 2<<30, Reserved: 1 << 30}, nvml.SUCCESS
	}
	return f
}

// told are the partitions of a read as one line each: labels, multiprocessors, memory, and how busy.
func told(d *telemetry.Device) []string {
	text := func(v metric.Value) string {
		if n, ok := v.Get(); ok {
			return fmt.Sprintf("%.4g", n)
		}
		return "-"
	}
	var out []string
	for _, p := range d.Partitions {
		x := p.Read
		out = append(out, fmt.Sprintf("%s %s %s: %s MP, %s B, %s, %s s", p.Labels.Get("gpu_partition_uuid"), p.Labels.Get("gpu_partition_id"),
			p.Labels.Get("gpu_partition_profile"), text(x.Partitions.Multiprocessors), text(x.Partitions.MemoryLimit),
			text(x.Profiling.SMActive), text(x.Profiling.SMActiveTime)))
	}
	return out
}

func (p profiled) tells(what string, want ...string) {
	p.Helper()
	if got := told(p.read(p.h)); !slices.Equal(got, want) {
		p.Errorf("%s:\n%s\nwant:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What a GPU instance shares among its compute instances is told once, of it, and not of each.
func TestPartitions(t *testing.T) {
	a, b, c := sized("MIG-a", "1c.3g.40gb", 2, 0), sized("MIG-b", "2c.3g.40gb", 2, 1), sized("MIG-c", "1g.10gb", 9, 0)
	p, d := partitioned(t, a, c, b)
	p.tells("before the first look",
		" 2 3g.40gb: - MP, 3.221e+10 B, -, - s", "MIG-a 2/0 1c.3g.40gb: 16 MP, - B, -, - s",
		"MIG-c 9/0 1g.10gb: 16 MP, 1.074e+10 B, -, - s", "MIG-b 2/1 2c.3g.40gb: 16 MP, - B, -, - s")
	p.look(0)
	p.look(10 * time.Second)
	p.tells("after two looks",
		" 2 3g.40gb: - MP, 3.221e+10 B, 0.02, 0.2 s", "MIG-a 2/0 1c.3g.40gb: 16 MP, - B, -, - s",
		"MIG-c 9/0 1g.10gb: 16 MP, 1.074e+10 B, 0.09, 0.9 s", "MIG-b 2/1 2c.3g.40gb: 16 MP, - B, -, - s")
	for gpu, times := range map[int]int{2: 2, 9: 2} {
		if n := d.asked[fmt.Sprint("sample of ", gpu)]; n != times {
			t.Errorf("GPU instance %d was sampled %d times in two looks", gpu, n)
		}
	}
	if n := a.asked["memory"] + b.asked["memory"]; n != 2 {
		t.Errorf("the memory two instances share was asked %d times in two reads", n)
	}
	out := p.read(p.h)
	for _, x := range out.Partitions {
		of := x.Read.Partitions
		if used, ok := of.MemoryUsage.Get(); ok {
			want(t, "used", of.MemoryUsage, float64(1<<30))
			want(t, "used, free and reserved together", of.MemoryLimit, used+p.number("free", of.MemoryFree)+p.number("reserved", of.MemoryReserved))
		}
		if x.Labels.Get("gpu_partition_uuid") != "" {
			want(t, "slices", of.Slices, 1.)
		}
	}
	if n := p.l.samples.Load(); n != 6 {
		t.Errorf("%d samples are held of a device and two GPU instances, want 6", n)
	}
}

// What an instance said must not be told of another that has taken its place.
func TestGeometryChanges(t *testing.T) {
	p, d := partitioned(t, sized("MIG-a", "1g.10gb", 7, 0), sized("MIG-b", "3g.40gb", 2, 0))
	p.look(0)
	p.look(10 * time.Second)
	p.tells("at first", "MIG-a 7/0 1g.10gb: 16 MP, 1.074e+10 B, 0.07, 0.7 s", "MIG-b 2/0 3g.40gb: 16 MP, 3.221e+10 B, 0.02, 0.2 s")

	d.cut(sized("MIG-a", "2g.20gb", 7, 0), sized("MIG-b2", "3g.40gb", 2, 0))
	p.tells("another profile under the same UUID, another UUID under the same ids",
		"MIG-a 7/0 2g.20gb: 16 MP, 2.147e+10 B, -, - s", "MIG-b2 2/0 3g.40gb: 16 MP, 3.221e+10 B, -, - s")
	if n := p.l.samples.Load(); n != 2 {
		t.Errorf("%d samples are held, want those of the device alone: the instances are gone", n)
	}
	p.look(5 * time.Second)
	p.tells("after one look, which is no window yet",
		"MIG-a 7/0 2g.20gb: 16 MP, 2.147e+10 B, -, - s", "MIG-b2 2/0 3g.40gb: 16 MP, 3.221e+10 B, -, - s")
	p.look(10 * time.Second)
	p.tells("after two looks", "MIG-a 7/0 2g.20gb: 16 MP, 2.147e+10 B, 0.07, 0.7 s", "MIG-b2 2/0 3g.40gb: 16 MP, 3.221e+10 B, 0.02, 0.2 s")

	d.cut(sized("MIG-a", "2g.20gb", 7, 0))
	p.tells("one is gone, and the other has another handle", "MIG-a 7/0 2g.20gb: 16 MP, 2.147e+10 B, 0.07, 0.7 s")
	d.cut()
	p.tells("all are gone")
	if n := p.l.samples.Load(); n != 2 {
		t.Errorf("%d samples are held without an instance, want 2", n)
	}
}

// A compute instance more in a GPU instance takes what is shared from the other, and gives it back
// when it goes; the GPU instance is the same meanwhile.
func TestComputeInstancesComeAndGo(t *testing.T) {
	a, b := sized("MIG-a", "1c.3g.40gb", 2, 0), sized("MIG-b", "1c.3g.40gb", 2, 1)
	p, d := partitioned(t, a)
	p.look(0)
	p.look(10 * time.Second)
	p.tells("one", "MIG-a 2/0 1c.3g.40gb: 16 MP, 3.221e+10 B, 0.02, 0.2 s")
	d.cut(a, b)
	p.tells("two", " 2 3g.40gb: - MP, 3.221e+10 B, 0.02, 0.2 s", "MIG-a 2/0 1c.3g.40gb: 16 MP, - B, -, - s", "MIG-b 2/1 1c.3g.40gb: 16 MP, - B, -, - s")
	p.look(10 * time.Second)
	d.cut(b)
	p.tells("the other", "MIG-b 2/1 1c.3g.40gb: 16 MP, 3.221e+10 B, 0.02, 0.4 s")
	if n := p.l.samples.Load(); n != 4 {
		t.Errorf("%d samples are held of a device and a GPU instance, want 4", n)
	}
}

// Turning MIG on ends what only a whole device answers, and turning it off brings it back at once.
func TestMIGOnAndOff(t *testing.T) {
	p, d := partitioned(t)
	on := false
	mode := func() nvml.Return {
		if on {
			return nvml.ERROR_NOT_SUPPORTED
		}
		return nvml.SUCCESS
	}
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		d.note("utilization")
		return nvml.Utilization{Gpu: 40}, mode()
	}
	d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		for i := range values {
			zero(&values[i])
			if id := values[i].FieldId; id >= 142 && id <= 145 {
				values[i].NvmlReturn = uint32(mode())
			}
		}
		return nvml.SUCCESS
	}
	d.cut(sized("MIG-a", "1g.10gb", 7, 0)) // there when it is on
	d.GetMigModeFunc = func() (int, int, nvml.Return) {
		if on {
			return 1, 1, nvml.SUCCESS
		}
		return 0, 0, nvml.SUCCESS
	}
	for i, now := range []bool{false, true, true, true, true, false, true, false} {
		on = now
		out := p.read(p.h)
		if n := len(out.Partitions); n != map[bool]int{false: 0, true: 1}[on] {
			t.Errorf("read %d: %d partitions while MIG is on: %v", i, n, on)
		}
		p.look(5 * time.Second)
		if n := p.l.samples.Load(); n != map[bool]int64{false: 2, true: 4}[on] {
			t.Errorf("read %d: %d samples are held while MIG is on: %v", i, n, on)
		}
		if on {
			want(t, "utilization under MIG", out.Utilization.Utilization, metric.Unsupported)
			want(t, "remapped rows under MIG", out.Repair.RowRemapPending, metric.Unsupported)
		} else {
			want(t, "utilization", out.Utilization.Utilization, 0.4)
			want(t, "remapped rows", out.Repair.RowRemapPending, 0.)
		}
	}
	if n := d.asked["utilization"]; n != 5 {
		t.Errorf("the utilization was asked %d times, want 5: at each read without MIG, and once each time it is on", n)
	}
}
