//go:build cgo

package nvml

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// fakeDevice answers every question NVML knows with success and zero, so that a new reader line
// needs no new fake. It counts what it was asked.
type fakeDevice struct {
	*mock.Device
	asked map[string]int // by call and arguments
}

func answering(uuid string) *fakeDevice {
	f := &fakeDevice{new(mock.Device), map[string]int{}}
	first := map[string]any{ // results that are not to be zero
		"GetUUIDFunc":                        uuid,
		"GetMemoryInfo_v2Func":               nvml.Memory_v2{Total: 80 << 30, Reserved: 1 << 30, Used: 9 << 30, Free: 70 << 30},
		"GetSupportedEventTypesFunc":         uint64(xidEvents),
		"GetSupportedClocksEventReasonsFunc": uint64(nvml.ClocksEventReasonAll),
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
						fields[i].ValueType, fields[i].NvmlReturn = uint32(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG), uint32(nvml.SUCCESS)
					}
				} else if a.Kind() != reflect.Interface { // an event set is used elsewhere at the same time
					question = append(question, a.Interface())
				}
			}
			f.asked[fmt.Sprint(question...)]++
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

// fields makes the device answer fields by number.
func (f *fakeDevice) fields(answers map[uint32]nvml.FieldValue) {
	f.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		for i := range values {
			id := values[i].FieldId
			values[i] = answers[id]
			values[i].FieldId = id
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
	events  chan nvml.EventData
	order   []string // of what was released
}

func newFakeLibrary(devices ...device) *fakeLibrary {
	return &fakeLibrary{devices: devices, driver: "580.65.06", handles: map[int]nvml.Return{}, events: make(chan nvml.EventData, 8)}
}

func (l *fakeLibrary) Init() nvml.Return { return l.init }

func (l *fakeLibrary) Shutdown() nvml.Return {
	l.order = append(l.order, "shutdown")
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

func (l *fakeLibrary) DeviceGetHandleByIndex(i int) (device, nvml.Return) {
	return l.devices[i], l.handles[i]
}

func (l *fakeLibrary) EventSetCreate() (nvml.EventSet, nvml.Return) {
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
	return &archive{log: slog.New(slog.DiscardHandler), of: map[string]*history{}}
}

func everything() choice { return choose(func(*metric.Desc) bool { return true }) }

// opened is a reader of the library, closed when the test ends.
func opened(t testing.TB, l *fakeLibrary) *reader {
	t.Helper()
	r, err := open(l, newArchive(), everything())
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
