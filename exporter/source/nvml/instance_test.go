//go:build cgo

package nvml

import (
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// What an instance does not tell when it is first seen is asked again: it may be being made.
func TestInstanceToldLate(t *testing.T) {
	a := sized("MIG-a", "1g.10gb", 7, 0)
	gpu, work, name, attributes := a.GetGpuInstanceIdFunc, a.GetComputeInstanceIdFunc, a.GetNameFunc, a.GetAttributesFunc
	busy := nvml.ERROR_IN_USE
	fail := func(f *fakeDevice) {
		f.GetGpuInstanceIdFunc = func() (int, nvml.Return) { return 0, busy }
	}
	p, d := partitioned(t, a)
	fail(a)
	p.tells("without the number of its GPU instance")
	a.GetGpuInstanceIdFunc, a.GetComputeInstanceIdFunc = gpu, func() (int, nvml.Return) { return 0, busy }
	p.tells("without its own number")
	a.GetComputeInstanceIdFunc, a.GetNameFunc = work, func() (string, nvml.Return) { return "", busy }
	p.tells("without its name", "MIG-a 7/0 : 16 MP, 1.074e+10 B, -, - s")
	a.GetNameFunc, a.GetAttributesFunc = name, func() (nvml.DeviceAttributes, nvml.Return) { return nvml.DeviceAttributes{}, busy }
	p.tells("without its attributes", "MIG-a 7/0 1g.10gb: - MP, 1.074e+10 B, -, - s")
	out := p.read(p.h).Partitions[0].Read.Partitions
	want(t, "multiprocessors", out.Multiprocessors, faults[nvml.ERROR_IN_USE])
	a.GetAttributesFunc = attributes
	p.tells("with all", "MIG-a 7/0 1g.10gb: 16 MP, 1.074e+10 B, -, - s")
	d.placement = func(int) (nvml.GpuInstanceInfo, nvml.Return) { return nvml.GpuInstanceInfo{}, busy }
	d.cut(sized("MIG-b", "1g.10gb", 8, 0), a)
	p.placed("without its place", "", "7:1")
	d.placement = nil
	p.placed("with its place", "0:1", "7:1")
	d.cut(a)
	clear(a.asked)
	p.tells("and once more", "MIG-a 7/0 1g.10gb: 16 MP, 1.074e+10 B, -, - s")
	if n := len(a.asked); n != 2 { // its UUID and its memory
		t.Errorf("what does not change was asked again: %v", a.asked)
	}
}

// An instance that is being destroyed, or that bears the UUID of another, costs only itself.
func TestInstancesAtFault(t *testing.T) {
	a, b, c := sized("MIG-a", "1g.10gb", 7, 0), sized("MIG-b", "1g.10gb", 8, 0), sized("MIG-a", "1g.10gb", 9, 0)
	p, _ := partitioned(t, a, b, c)
	p.tells("one UUID twice", "MIG-a 7/0 1g.10gb: 16 MP, 1.074e+10 B, -, - s", "MIG-b 8/0 1g.10gb: 16 MP, 1.074e+10 B, -, - s")
	b.GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_NOT_FOUND }
	p.tells("one without a UUID", "MIG-a 7/0 1g.10gb: 16 MP, 1.074e+10 B, -, - s")
	b.GetUUIDFunc = func() (string, nvml.Return) { return "MIG-b", nvml.SUCCESS }
	b.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{}, nvml.ERROR_UNKNOWN }
	out := p.read(p.h)
	want(t, "memory of the one at fault", out.Partitions[1].Read.Partitions.MemoryLimit, faults[nvml.ERROR_UNKNOWN])
	want(t, "memory of the other", out.Partitions[0].Read.Partitions.MemoryLimit, float64(10<<30))
	b.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{Total: 1, Used: 2}, nvml.SUCCESS }
	want(t, "more memory used than there is", p.read(p.h).Partitions[1].Read.Partitions.MemoryUsage, metric.Implausible)
}

// A device that is lost while its instances are listed is lost, and its profile is not looked at.
func TestLostWhileListing(t *testing.T) {
	for name, breaks := range map[string]func(d *fakeDevice, a *fakeDevice){
		"at their number": func(d, _ *fakeDevice) {
			d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_GPU_IS_LOST }
		},
		"at the second of them": func(d, _ *fakeDevice) { d.lostInstance = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			a := sized("MIG-a", "1g.10gb", 7, 0)
			p, d := partitioned(t, a, sized("MIG-b", "1g.10gb", 8, 0))
			breaks(d, a)
			p.look(0)
			p.look(5 * time.Second)
			var out telemetry.Device
			if why := p.h.Read(t.Context(), &out); why != metric.Lost || out.Partitions != nil {
				t.Errorf("read with %v, %d partitions", why, len(out.Partitions))
			}
			d.lostInstance = 0
			d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
			p.tells("back", "MIG-a 7/0 1g.10gb: 16 MP, 1.074e+10 B, -, - s", "MIG-b 8/0 1g.10gb: 16 MP, 1.074e+10 B, -, - s")
		})
	}
}

// Drivers of MIG's first years have no profiler: calling what is not there ends the process.
func TestInstancesOfOldDriver(t *testing.T) {
	for name, missing := range map[string][]string{
		"no profiler":                  {"nvmlGpmSampleGet", "nvmlGpmMigSampleGet", "nvmlGpmSampleAlloc"},
		"no profiler of GPU instances": {"nvmlGpmMigSampleGet"},
	} {
		d := answering("GPU-0")
		a := sized("MIG-a", "1g.10gb", 7, 0)
		a.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) {
			return nvml.Memory{Total: 10 << 30, Used: 2 << 30, Free: 8 << 30}, nvml.SUCCESS
		}
		d.cut(a)
		l := newFakeLibrary(d)
		l.missing = append(missing, "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes")
		if name == "no profiler" {
			l.alloc = func() (nvml.GpmSample, nvml.Return) {
				t.Errorf("%s: a sample was asked for", name)
				return nil, nvml.ERROR_FUNCTION_NOT_FOUND
			}
		}
		n := started(t, l)
		h := n.list()[0]
		h.Sample(t.Context())
		n.turn(5 * time.Second)
		h.Sample(t.Context())
		out := n.read(h)
		if len(out.Partitions) != 1 {
			t.Fatalf("%s: %d partitions", name, len(out.Partitions))
		}
		x := out.Partitions[0].Read
		want(t, name+": window", x.Profiling.SMActive, metric.Unsupported)
		want(t, name+": time", x.Profiling.SMActiveTime, metric.Unsupported)
		want(t, name+": memory", x.Partitions.MemoryLimit, float64(10<<30))
		want(t, name+": free memory", x.Partitions.MemoryFree, float64(8<<30))
		want(t, name+": used memory, which includes the reserved", x.Partitions.MemoryUsage, metric.Unsupported)
		want(t, name+": reserved memory", x.Partitions.MemoryReserved, metric.Unsupported)
		want(t, name+": multiprocessors", x.Partitions.Multiprocessors, metric.Unsupported)
		if n := d.asked["GpmMigSampleGetFunc"]; n != 0 {
			t.Errorf("%s: an instance was sampled", name)
		}
	}
}
