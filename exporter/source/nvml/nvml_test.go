//go:build cgo

package nvml

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/source/sourcetest"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Every metric the spec says NVML gives is read, in every scope, and no other.
func TestSpecIsRead(t *testing.T) {
	d := answering("GPU-0")
	d.cut(part("MIG-0", "1g.10gb", 7, 0))
	l := newFakeLibrary(d)
	l.driver = "610.43.02"
	devices, err := opened(t, l).Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := devices[0].(*handle)
	h.Sample(t.Context())
	time.Sleep(shortest + 10*time.Millisecond)
	h.Sample(t.Context())
	l.events <- nvml.EventData{Device: d.Raw(), EventType: xidEvents, EventData: 79}
	var read telemetry.Device
	for deadline := time.Now().Add(5 * time.Second); len(read.XID.Errors) == 0 && time.Now().Before(deadline); {
		read = telemetry.Device{}
		if why := h.Read(t.Context(), &read); why != nil {
			t.Fatal(why)
		}
	}
	sourcetest.SpecIsRead(t, "nvml", telemetry.DeviceFamilies, &read)
	if len(read.Partitions) != 1 || len(read.Links) != 3 || len(read.Processes) != 1 {
		t.Fatalf("%d partitions, %d links, %d processes", len(read.Partitions), len(read.Links), len(read.Processes))
	}
	sourcetest.SpecIsRead(t, "nvml", telemetry.PartitionFamilies, &read.Partitions[0].Read)
	sourcetest.SpecIsRead(t, "nvml", telemetry.ProcessFamilies, &read.Processes[0].Read)
	var link telemetry.Link // what each sort of link gives, together
	for i := range read.Links {
		sourcetest.Merge(telemetry.LinkFamilies, &link, &read.Links[i].Read)
	}
	sourcetest.SpecIsRead(t, "nvml", telemetry.LinkFamilies, &link)
}

func TestNoCallTwice(t *testing.T) {
	d := answering("GPU-0")
	devices, err := opened(t, newFakeLibrary(d)).Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		clear(d.asked)
		if why := devices[0].Read(t.Context(), new(telemetry.Device)); why != nil {
			t.Fatal(why)
		}
		if len(d.asked) < 30 {
			t.Errorf("only %d questions were asked: %v", len(d.asked), d.asked)
		}
		for call, n := range d.asked {
			if n != 1 {
				t.Errorf("%s was asked %d times in one read", call, n)
			}
		}
	}
}

func TestIdentity(t *testing.T) {
	d := answering("GPU-6b1f3c1e")
	answer := func(s string) func() (string, nvml.Return) {
		return func() (string, nvml.Return) { return s, nvml.SUCCESS }
	}
	d.GetNameFunc, d.GetVbiosVersionFunc = answer("NVIDIA H100 80GB HBM3"), answer("96.00.5E.00.01")
	d.GetBoardPartNumberFunc = answer("692-2G520-0200-000")
	d.GetSerialFunc = func() (string, nvml.Return) { return "junk", nvml.ERROR_NOT_SUPPORTED }
	d.GetArchitectureFunc = func() (nvml.DeviceArchitecture, nvml.Return) { return nvml.DEVICE_ARCH_HOPPER, nvml.SUCCESS }
	d.GetCudaComputeCapabilityFunc = func() (int, int, nvml.Return) { return 9, 0, nvml.SUCCESS }
	d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
		var p nvml.PciInfo
		for i, c := range "00000000:8A:00.0" {
			p.BusId[i] = int8(c)
		}
		return p, nvml.SUCCESS
	}
	devices, err := opened(t, newFakeLibrary(answering("GPU-0"), d)).Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := telemetry.Identity{
		UUID: "GPU-6b1f3c1e", Index: 1, Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3", PCI: "0000:8a:00.0",
		PartNumber: "692-2G520-0200-000", Architecture: "hopper", ComputeCapability: "9.0",
		DriverVersion: "580.65.06", CUDAVersion: "13.1", FirmwareVersion: "96.00.5E.00.01", Minor: "0", Slices: "7",
	}
	if got := *devices[1].Identity(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestListing(t *testing.T) {
	l := newFakeLibrary(answering("GPU-0"), answering("GPU-1"), answering("GPU-2"))
	r := opened(t, l)
	uuids := func() (string, []source.Device) {
		t.Helper()
		devices, err := r.Devices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, d := range devices {
			names = append(names, d.Identity().UUID)
		}
		return strings.Join(names, " "), devices
	}

	l.handles[1] = nvml.ERROR_GPU_IS_LOST
	names, before := uuids()
	if names != "GPU-0 GPU-2" {
		t.Errorf("with one that never gave a handle: %s", names)
	}
	delete(l.handles, 1)
	names, after := uuids()
	if names != "GPU-0 GPU-2 GPU-1" || before[0] != after[0] || before[1] != after[1] {
		t.Errorf("with all: %s; the same as before: %v %v", names, before[0] == after[0], before[1] == after[1])
	}
	l.handles[0] = nvml.ERROR_GPU_IS_LOST
	names, lost := uuids()
	if names != "GPU-0 GPU-2 GPU-1" || lost[0] != after[0] {
		t.Errorf("with a known one lost: %s", names)
	}
	l.count = nvml.ERROR_UNINITIALIZED
	if _, err := r.Devices(t.Context()); err == nil {
		t.Error("a driver that is gone lists devices")
	}
	l.count, l.devices = nvml.SUCCESS, nil
	if names, gone := uuids(); names != "GPU-0 GPU-2 GPU-1" || gone[0].Read(t.Context(), new(telemetry.Device)) != metric.Lost {
		t.Errorf("with all gone: %s", names)
	}
	if _, err := opened(t, newFakeLibrary()).Devices(t.Context()); !errors.Is(err, source.ErrAbsent) {
		t.Errorf("a driver without devices: %v", err)
	}
	none := newFakeLibrary(answering("GPU-0"))
	none.handles[0] = nvml.ERROR_UNKNOWN
	if devices, err := opened(t, none).Devices(t.Context()); err == nil {
		t.Errorf("no device gives a handle, and the listing is %v", devices)
	}
}

func TestInitFaults(t *testing.T) {
	for ret, absent := range map[nvml.Return]bool{
		nvml.ERROR_LIBRARY_NOT_FOUND: true, nvml.ERROR_DRIVER_NOT_LOADED: true,
		nvml.ERROR_UNKNOWN: false, nvml.ERROR_LIB_RM_VERSION_MISMATCH: false, nvml.ERROR_MEMORY: false,
	} {
		l := newFakeLibrary()
		l.init = ret
		_, err := open(l, config(), newArchive(), everything())
		if err == nil || errors.Is(err, source.ErrAbsent) != absent || !strings.Contains(err.Error(), ret.Error()) {
			t.Errorf("%v: %v; absent should be %v", ret, err, absent)
		}
	}
}

// A driver of before the younger calls is read with what it has.
func TestOldDriver(t *testing.T) {
	d := answering("GPU-0")
	d.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) {
		return nvml.Memory{Total: 80 << 30, Used: 10 << 30, Free: 70 << 30}, nvml.SUCCESS
	}
	d.GetCurrentClocksThrottleReasonsFunc = func() (uint64, nvml.Return) { return 0x4, nvml.SUCCESS }
	d.GetSupportedClocksThrottleReasonsFunc = func() (uint64, nvml.Return) { return 0xff, nvml.SUCCESS }
	l := newFakeLibrary(d)
	l.missing = []string{
		"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMarginTemperature", "nvmlDeviceGetCurrentClocksEventReasons",
		"nvmlDeviceGetSupportedClocksEventReasons", "nvmlDeviceGetJpgUtilization", "nvmlDeviceGetOfaUtilization",
	}
	out, why := readOnce(t, l)
	if why != nil {
		t.Fatal(why)
	}
	for call := range d.asked {
		for _, symbol := range l.missing {
			if name := strings.TrimPrefix(symbol, "nvmlDevice"); strings.HasPrefix(call, name+"Func") {
				t.Errorf("%s was called, which this driver lacks: that ends the process", name)
			}
		}
	}
	want(t, "limit", out.Memory.Limit, float64(80<<30))
	want(t, "free", out.Memory.Free, float64(70<<30))
	want(t, "usage", out.Memory.Usage, metric.Unsupported)
	want(t, "reserved", out.Memory.Reserved, metric.Unsupported)
	want(t, "margin", out.Thermal.TemperatureMargin, metric.Unsupported)
	want(t, "jpeg", out.Utilization.MediaUtilization[telemetry.MediaEngineJPEG], metric.Unsupported)
	want(t, "ofa", out.Utilization.MediaUtilization[telemetry.MediaEngineOFA], metric.Unsupported)
	want(t, "encoder", out.Utilization.MediaUtilization[telemetry.MediaEngineEncoder], 0.)
	want(t, "power cap", out.Throttle.Reason[telemetry.ThrottleCauseSWPowerCap], 1.)
	want(t, "display", out.Throttle.Reason[telemetry.ThrottleCauseDisplayClocks], metric.Unsupported)
	want(t, "throttled by heat", out.Throttle.Time[telemetry.ThrottleCauseSWThermal], 0.) // 580
}

// Each symbol that is looked up is that of a call which is made, so a misspelt one can not pass for
// an old driver. go-nvml's own name of a call is the symbol's without its prefix.
func TestSymbolsAreCalls(t *testing.T) {
	device, header := reflect.TypeFor[device](), declared(t)
	elsewhere := map[string]string{ // calls that the narrow interface names by the version read
		"nvmlDeviceGetTemperatureV": "TemperatureV1", "nvmlDeviceGetGpuFabricInfoV": "FabricV3", "nvmlDeviceGetC2cModeInfoV": "C2CModeV1",
		"nvmlDeviceGetMigDeviceHandleByIndex": "Instance", "nvmlGpmSampleGet": "GpmSampleGet", "nvmlGpmMigSampleGet": "GpmMigSampleGet",
	}
	for q, names := range symbols {
		if names == "" {
			t.Errorf("question %d has no symbol", q)
		}
		made := false
		for name := range strings.SplitSeq(names, "|") {
			_, ok := device.MethodByName(cmp.Or(elsewhere[name], strings.TrimPrefix(name, "nvmlDevice")))
			made = made || ok
			if !header[name] {
				t.Errorf("%s is no function of the header", name)
			}
		}
		if !made {
			t.Errorf("%s is looked up and never called", names)
		}
	}
}

// declared are the functions of NVIDIA's header, as go-nvml has it.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml")
	said, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v", list.Args, err)
	}
	header, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(said)), "pkg/nvml/nvml.h"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`DECLDIR (nvml\w+) ?\(`).FindAllSubmatch(header, -1) {
		out[string(m[1])] = true
	}
	return out
}
