//go:build cgo

package nvml

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// eventually waits until what is asked holds.
func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !ask(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestXIDs(t *testing.T) {
	a, b, deaf := answering("GPU-a"), answering("GPU-b"), answering("GPU-deaf")
	deaf.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) { return 0, nvml.SUCCESS }
	l := newFakeLibrary(a, b, deaf)
	past := newArchive()
	r, err := open(l, config(), past, everything())
	if err != nil {
		t.Fatal(err)
	}
	devices, err := r.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read := func(i int) []metric.Keyed {
		var out telemetry.Device
		_ = devices[i].Read(t.Context(), &out) // lost or not
		return out.XID.Errors
	}
	if x := read(0); x == nil || len(x) != 0 {
		t.Errorf("listened to and nothing heard: %#v, want empty and not nil", x)
	}
	if x := read(2); x != nil {
		t.Errorf("not listened to: %#v, want nil", x)
	}
	for _, e := range []nvml.EventData{
		{Device: a.Raw(), EventType: xidEvents, EventData: 79}, {Device: a.Raw(), EventType: xidEvents, EventData: 13},
		{Device: a.Raw(), EventType: xidEvents, EventData: 79}, {Device: b.Raw(), EventType: xidEvents, EventData: 48},
		{Device: b.Raw(), EventType: nvml.EventTypeSingleBitEccError, EventData: 1},
		{Device: answering("GPU-stranger").Raw(), EventType: xidEvents, EventData: 31},
	} {
		l.events <- e
	}
	eventually(t, "three XIDs of a and one of b", func() bool {
		x, y := errorsOf(read(0)), errorsOf(read(1))
		return len(x) == 2 && x["79"] == 2 && x["13"] == 1 && len(y) == 1 && y["48"] == 1
	})
	before := read(0)
	l.events <- nvml.EventData{Device: a.Raw(), EventType: xidEvents, EventData: 13}
	eventually(t, "another XID 13", func() bool { return errorsOf(read(0))["13"] == 2 })
	if errorsOf(before)["13"] != 1 {
		t.Error("a list already given was changed")
	}
	if x := read(0); x[0].Labels.Get("gpu_xid") != "13" || read(0)[0].Labels != x[0].Labels {
		t.Error("codes do not rise, or their labels are made again")
	}

	// A device that is lost still tells its XIDs: they say why.
	a.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_GPU_IS_LOST }
	if x := errorsOf(read(0)); x["79"] != 2 {
		t.Errorf("lost, with XIDs %v", x)
	}

	closed(t, r)
	if !slices.Equal(l.order, []string{"free", "shutdown"}) {
		t.Errorf("released %v", l.order)
	}

	// Opened again, the counts go on.
	if r, err = open(l, config(), past, everything()); err != nil {
		t.Fatal(err)
	}
	defer closed(t, r)
	if devices, err = r.Devices(t.Context()); err != nil {
		t.Fatal(err)
	}
	if x := errorsOf(read(0)); x["79"] != 2 {
		t.Errorf("opened again, with XIDs %v", x)
	}
}

// A lost device makes every wait fail. The others are listened to again without it.
func TestListenerRenews(t *testing.T) {
	a, b := answering("GPU-a"), answering("GPU-b")
	l := newFakeLibrary(a, b)
	events := newListener(t, l)
	book := newArchive().xids
	old := &mock.EventSet{FreeFunc: func() nvml.Return { return nvml.SUCCESS }}
	events.watched = map[nvml.Device]*xids{a.Raw(): book.device("GPU-a"), b.Raw(): book.device("GPU-b")}
	a.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return nvml.ERROR_GPU_IS_LOST }
	next := events.renew(old)
	if next == nvml.EventSet(old) || len(old.FreeCalls()) != 1 || events.set != next {
		t.Error("the set was not replaced and freed")
	}
	b.RegisterEventsFunc = a.RegisterEventsFunc
	if events.renew(next) != next || events.set != next {
		t.Error("the set was replaced by an empty one")
	}
}

func newListener(t *testing.T, l library) *listener {
	t.Helper()
	return listen(l, newArchive().log)
}

// Closing does not wait for ever for a driver that does not come back.
func TestListenerHangs(t *testing.T) {
	waiting, hang := make(chan struct{}), make(chan struct{})
	defer close(hang)
	l := newFakeLibrary(answering("GPU-0"))
	events := newListener(t, l)
	events.giveUp = 10 * time.Millisecond
	events.set = &mock.EventSet{WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
		close(waiting)
		<-hang
		return nvml.EventData{}, nvml.ERROR_TIMEOUT
	}}
	if !events.watch(l.devices[0], newArchive().xids.device("GPU-0")) {
		t.Fatal("not watched")
	}
	<-waiting
	if err := events.close(); !errors.Is(err, errHanging) {
		t.Errorf("closed with %v", err)
	}
}
