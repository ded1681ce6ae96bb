//go:build cgo

package nvml

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// fakeDevice answers every question NVML knows with success and zero, so that a new reader line
// needs no new fake. It counts what it was asked. It has one NVLink, one connection chip to chip,
// one MIG instance when MIG is on, and one process.
type fakeDevice struct {
	*mock.Device
	mu        sync.Mutex
	asked     map[string]int // by call and arguments
	instances map[int]*fakeDevice

	// Instead of the answers below, where a test has its own.
	fabricV3 func() (nvml.GpuFabricInfo_v3, nvml.Return)
	fabricV2 func() (nvml.GpuFabricInfo_v2, nvml.Return)

	placement  func(id int) (nvml.GpuInstanceInfo, nvml.Return)
	gpmSupport nvml.Return
	unprofiled bool

	lostInstance int // asked for this one, the device is lost; 0: none
}

func (f *fakeDevice) Raw() nvml.Device { return f.Device }

func (f *fakeDevice) Instance(i int) (device, nvml.Return) {
	f.note("InstanceFunc", i)
	if i == f.lostInstance && i > 0 {
		return nil, nvml.ERROR_GPU_IS_LOST
	}
	if one := f.instances[i]; one != nil {
		return one, nvml.SUCCESS
	}
	return nil, nvml.ERROR_NOT_FOUND
}

func (f *fakeDevice) GetGpuInstanceById(id int) (nvml.GpuInstanceInfo, nvml.Return) {
	f.note("GetGpuInstanceByIdFunc", id)
	if f.placement != nil {
		return f.placement(id)
	}
	return nvml.GpuInstanceInfo{ProfileId: 19, Placement: nvml.GpuInstancePlacement{Start: uint32(id) % 8, Size: 1}}, nvml.SUCCESS
}

func (f *fakeDevice) TemperatureV1() (nvml.Temperature, nvml.Return) {
	f.note("GetTemperatureVFunc")
	return nvml.Temperature{Temperature: 41}, nvml.SUCCESS
}

func (f *fakeDevice) FabricV3() (nvml.GpuFabricInfo_v3, nvml.Return) {
	f.note("GetGpuFabricInfoVFunc", 3)
	if f.fabricV3 != nil {
		return f.fabricV3()
	}
	return nvml.GpuFabricInfo_v3{State: nvml.GPU_FABRIC_STATE_COMPLETED}, nvml.SUCCESS
}

func (f *fakeDevice) FabricV2() (nvml.GpuFabricInfo_v2, nvml.Return) {
	f.note("GetGpuFabricInfoVFunc", 2)
	if f.fabricV2 != nil {
		return f.fabricV2()
	}
	return nvml.GpuFabricInfo_v2{}, nvml.SUCCESS
}

func (f *fakeDevice) C2CModeV1() (nvml.C2cModeInfo_v1, nvml.Return) {
	f.note("GetC2cModeInfoVFunc")
	return nvml.C2cModeInfo_v1{}, nvml.SUCCESS
}

func (f *fakeDevice) GpmSupportV1() (nvml.GpmSupport, nvml.Return) {
	f.note("GpmQueryDeviceSupportFunc")
	if f.unprofiled {
		return nvml.GpmSupport{}, nvml.SUCCESS
	}
	return nvml.GpmSupport{IsSupportedDevice: 1}, f.gpmSupport
}

func (f *fakeDevice) note(question ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[fmt.Sprint(question...)]++
}

func answering(uuid string) *fakeDevice {
	f := &fakeDevice{Device: new(mock.Device), asked: map[string]int{}, instances: map[int]*fakeDevice{}}
	first := map[string]any{ // results that are not to be zero
		"GetUUIDFunc":                            uuid,
		"GetMemoryInfo_v2Func":                   nvml.Memory_v2{Total: 80 << 30, Reserved: 1 << 30, Used: 9 << 30, Free: 70 << 30},
		"GetBAR1MemoryInfoFunc":                  nvml.BAR1Memory{Bar1Total: 1 << 30, Bar1Used: 1 << 20},
		"GetConfComputeProtectedMemoryUsageFunc": nvml.Memory{Total: 1 << 30},
		"GetSupportedEventTypesFunc":             uint64(xidEvents),
		"GetSupportedClocksEventReasonsFunc":     uint64(nvml.ClocksEventReasonAll),
		"GetNumFansFunc":                         1,
		"GetMaxMigDeviceCountFunc":               7,
		"GetComputeRunningProcessesFunc":         []nvml.ProcessInfo{{Pid: 4242, UsedGpuMemory: 1 << 30, GpuInstanceId: 1<<32 - 1, ComputeInstanceId: 1<<32 - 1}},
	}
	v := reflect.ValueOf(f.Device).Elem()
	for i := range v.NumField() {
		name, fn := v.Type().Field(i).Name, v.Field(i)
		if !fn.CanSet() || fn.Kind() != reflect.Func {
			continue
		}
		t := fn.Type()
		fn.Set(reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
			question := []any{name}
			for _, a := range args {
				if fields, ok := reflect.TypeAssert[[]nvml.FieldValue](a); ok {
					for i := range fields {
						zero(&fields[i])
						question = append(question, fields[i].FieldId)
					}
				} else if a.Kind() != reflect.Interface { // an event set is used elsewhere at the same time
					question = append(question, a.Interface())
				}
			}
			f.note(question...)
			out := make([]reflect.Value, t.NumOut())
			for i := range out {
				out[i] = reflect.Zero(t.Out(i))
			}
			if result, ok := first[name]; ok {
				out[0] = reflect.ValueOf(result)
			}
			return out
		}))
	}
	return f
}

// zero answers a field: there is one of each link, of generation 4, and no error.
func zero(v *nvml.FieldValue) {
	v.ValueType, v.NvmlReturn = uint32(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG), uint32(nvml.SUCCESS)
	switch v.FieldId {
	case nvml.FI_DEV_NVLINK_LINK_COUNT, nvml.FI_DEV_C2C_LINK_COUNT, nvml.FI_DEV_NVLINK_GET_STATE:
		v.Value[0] = 1
	case nvml.FI_DEV_NVLINK_GET_VERSION:
		v.Value[0] = byte(nvml.NVLINK_VERSION_4_0)
	}
}

// cut turns MIG on, with these instances.
func (f *fakeDevice) cut(instances ...*fakeDevice) {
	f.GetMigModeFunc = func() (int, int, nvml.Return) { return 1, 1, nvml.SUCCESS }
	clear(f.instances)
	for i, one := range instances {
		f.instances[2*i] = one // with holes
	}
}

// part is a MIG instance.
func part(uuid, profile string, gpu, work int) *fakeDevice {
	f := answering(uuid)
	f.GetNameFunc = func() (string, nvml.Return) { return "NVIDIA H100 80GB HBM3 MIG " + profile, nvml.SUCCESS }
	f.GetGpuInstanceIdFunc = func() (int, nvml.Return) { return gpu, nvml.SUCCESS }
	f.GetComputeInstanceIdFunc = func() (int, nvml.Return) { return work, nvml.SUCCESS }
	f.GetAttributesFunc = func() (nvml.DeviceAttributes, nvml.Return) {
		return nvml.DeviceAttributes{MultiprocessorCount: 16, ComputeInstanceSliceCount: 1}, nvml.SUCCESS
	}
	return f
}

// fields makes the device answer fields by number.
func (f *fakeDevice) fields(answers map[uint32]nvml.FieldValue) {
	f.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		for i := range values {
			id, scope := values[i].FieldId, values[i].ScopeId
			values[i] = answers[id]
			values[i].FieldId, values[i].ScopeId = id, scope
		}
		return nvml.SUCCESS
	}
}

// fakeLibrary is a driver with the devices given.
type fakeLibrary struct {
	devices []device
	handles map[int]nvml.Return // of indices that give no handle
	init    nvml.Return
	count   nvml.Return
	missing []string // symbols
	driver  string
	branch  nvml.SystemDriverBranchInfo
	events  chan nvml.EventData
	order   []string // of what was released
	inits   int
	users   int // Init without Shutdown
	gpm     func(*nvml.GpmMetricsGetType) nvml.Return
	samples atomic.Int64 // alive

	eventSet     func() (nvml.EventSet, nvml.Return)               // nil: one that delivers events
	alloc        func() (nvml.GpmSample, nvml.Return)              // nil: there is memory
	confidential func() (nvml.ConfComputeSystemState, nvml.Return) // nil: it is off
}

func newFakeLibrary(devices ...device) *fakeLibrary {
	return &fakeLibrary{devices: devices, driver: "580.65.06", handles: map[int]nvml.Return{}, events: make(chan nvml.EventData, 8)}
}

func (l *fakeLibrary) Init() nvml.Return {
	l.inits++
	if l.init == nvml.SUCCESS {
		l.users++
	}
	return l.init
}

func (l *fakeLibrary) Shutdown() nvml.Return {
	l.order = append(l.order, "shutdown")
	if l.users == 0 {
		return nvml.ERROR_UNINITIALIZED
	}
	l.users--
	return nvml.SUCCESS
}

func (l *fakeLibrary) LookupSymbol(name string) error {
	if slices.Contains(l.missing, name) {
		return errors.New("undefined symbol: " + name)
	}
	return nil
}

func (l *fakeLibrary) SystemGetDriverVersion() (string, nvml.Return)  { return l.driver, nvml.SUCCESS }
func (l *fakeLibrary) SystemGetCudaDriverVersion() (int, nvml.Return) { return 13010, nvml.SUCCESS }
func (l *fakeLibrary) DeviceGetCount() (int, nvml.Return)             { return len(l.devices), l.count }

func (l *fakeLibrary) SystemGetDriverBranch() (nvml.SystemDriverBranchInfo, nvml.Return) {
	return l.branch, nvml.SUCCESS
}

func (l *fakeLibrary) SystemGetConfComputeState() (nvml.ConfComputeSystemState, nvml.Return) {
	if l.confidential != nil {
		return l.confidential()
	}
	return nvml.ConfComputeSystemState{}, nvml.SUCCESS
}

func (l *fakeLibrary) SystemGetNvlinkBwMode() (uint32, nvml.Return) { return 0, nvml.SUCCESS }

func (l *fakeLibrary) GpmSampleAlloc() (nvml.GpmSample, nvml.Return) {
	if l.alloc != nil {
		return l.alloc()
	}
	l.samples.Add(1)
	return &mock.GpmSample{FreeFunc: func() nvml.Return {
		l.samples.Add(-1)
		return nvml.SUCCESS
	}}, nvml.SUCCESS
}

func (l *fakeLibrary) GpmMetricsGet(ask *nvml.GpmMetricsGetType) nvml.Return {
	if l.gpm != nil {
		return l.gpm(ask)
	}
	for i := range ask.NumMetrics {
		ask.Metrics[i].NvmlReturn = uint32(nvml.SUCCESS)
	}
	return nvml.SUCCESS
}

func (l *fakeLibrary) DeviceGetHandleByIndex(i int) (device, nvml.Return) {
	return l.devices[i], l.handles[i]
}

func (l *fakeLibrary) EventSetCreate() (nvml.EventSet, nvml.Return) {
	if l.eventSet != nil {
		return l.eventSet()
	}
	return &mock.EventSet{
		WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
			select {
			case e := <-l.events:
				return e, nvml.SUCCESS
			case <-time.After(10 * time.Millisecond):
				return nvml.EventData{}, nvml.ERROR_TIMEOUT
			}
		},
		FreeFunc: func() nvml.Return {
			l.order = append(l.order, "free")
			return nvml.SUCCESS
		},
	}, nvml.SUCCESS
}

func newArchive() *archive {
	log := slog.New(slog.DiscardHandler)
	return &archive{log: log, of: map[string]*history{}, xids: newXIDBook(Config{Logger: log})}
}

func everything() *choice { return choose(func(*metric.Desc) bool { return true }) }

// config is that of New, without a limit that matters.
func config() Config {
	return Config{Processes: 8, Proc: "/nowhere", Timeout: 2 * time.Second, now: time.Now}
}

// opened is a reader of the library, closed when the test ends.
func opened(t testing.TB, l *fakeLibrary) *reader {
	t.Helper()
	r, err := open(l, config(), newArchive(), everything())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, r) })
	return r
}

func closed(t testing.TB, r *reader) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// readOnce opens a driver with that one device and reads it.
func readOnce(t testing.TB, l *fakeLibrary) (*telemetry.Device, *metric.Reason) {
	t.Helper()
	devices, err := opened(t, l).Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := new(telemetry.Device)
	return out, devices[0].Read(t.Context(), out)
}

// want checks one reading: a number, or a reason.
func want[W float64 | *metric.Reason](t testing.TB, what string, got metric.Value, want W) {
	t.Helper()
	switch w := any(want).(type) {
	case float64:
		if n, ok := got.Get(); !ok || n != w {
			t.Errorf("%s = %v (%v), want %v", what, n, got.Why(), w)
		}
	case *metric.Reason:
		if got.Why() != w {
			n, _ := got.Get()
			t.Errorf("%s = %v (%v), want none: %v", what, n, got.Why(), w)
		}
	}
}
