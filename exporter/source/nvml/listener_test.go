//go:build cgo

package nvml

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// A lost device makes every wait fail. The others are registered with a new set without it.
func TestListener_FailedWaitLeavesOutTheLostDevice(t *testing.T) {
	lost, healthy := answering("GPU-lost"), answering("GPU-healthy")
	refuse(lost, 2)
	l := newFakeLibrary(lost, healthy)
	var first atomic.Bool
	freed := make(chan struct{})
	l.eventSet = func() (nvml.EventSet, nvml.Return) {
		if first.CompareAndSwap(false, true) {
			return &mock.EventSet{
				WaitFunc: func(uint32) (nvml.EventData, nvml.Return) { return nvml.EventData{}, nvml.ERROR_GPU_IS_LOST },
				FreeFunc: func() nvml.Return { close(freed); return nvml.SUCCESS },
			}, nvml.SUCCESS
		}
		return (&fakeLibrary{events: l.events}).EventSetCreate()
	}
	book := newArchive().xids
	events := listen(l, newArchive().log)
	defer closing(t, events)
	events.watch([]watch{watching(lost, book, "GPU-lost"), watching(healthy, book, "GPU-healthy")})
	<-freed // after the first pause
	l.events <- nvml.EventData{Device: healthy.Raw(), EventType: xidEvents, EventData: 79}
	eventually(t, "the healthy device's XID", func() bool { return countOf(book.device("GPU-healthy"), 79) == 1 })
}

// Where no device can be registered any more, the old set stays.
func TestListener_KeepsTheSetWhenNoDeviceRegisters(t *testing.T) {
	d := answering("GPU-0")
	l := newFakeLibrary(d)
	sets := make(chan *mock.EventSet, 8)
	fails := atomic.Bool{}
	fails.Store(true)
	l.eventSet = func() (nvml.EventSet, nvml.Return) {
		s := &mock.EventSet{FreeFunc: func() nvml.Return { return nvml.SUCCESS }}
		s.WaitFunc = func(uint32) (nvml.EventData, nvml.Return) {
			if fails.Load() {
				return nvml.EventData{}, nvml.ERROR_UNKNOWN
			}
			return nvml.EventData{Device: d.Raw(), EventType: xidEvents, EventData: 48}, nvml.SUCCESS
		}
		sets <- s
		return s, nvml.SUCCESS
	}
	refuse(d, 2)
	book := newArchive().xids
	events := listen(l, newArchive().log)
	defer closing(t, events)
	events.watch([]watch{watching(d, book, "GPU-0")})
	first, second := <-sets, <-sets
	eventually(t, "the second set is freed", func() bool { return len(second.FreeCalls()) == 1 })
	if len(first.FreeCalls()) != 0 {
		t.Error("the set that waits was freed")
	}
	fails.Store(false)
	eventually(t, "XIDs of the old set", func() bool { return countOf(book.device("GPU-0"), 48) > 0 })
}

// refuse lets a device be registered with an event set that many times less one, and no more.
func refuse(d *fakeDevice, from int32) {
	var calls atomic.Int32
	d.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return {
		if calls.Add(1) >= from {
			return nvml.ERROR_GPU_IS_LOST
		}
		return nvml.SUCCESS
	}
}

func watching(d *fakeDevice, book *xidBook, uuid string) watch {
	return watch{d, book.device(uuid), new(atomic.Bool)}
}

// countOf is how many XIDs of a code were counted, whatever a reading shows.
func countOf(x *xids, code uint64) uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.at(code).count
}

func closing(t *testing.T, l *listener) {
	if err := l.close(); err != nil {
		t.Error(err)
	}
}

// hangingSet is an event set whose wait does not return before hang is closed.
func hangingSet(waiting, hang chan struct{}) *mock.EventSet {
	waits := sync.OnceFunc(func() { close(waiting) }) // the listener may wait again before it is closed
	return &mock.EventSet{
		WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
			waits()
			<-hang
			return nvml.EventData{}, nvml.ERROR_TIMEOUT
		},
		FreeFunc: func() nvml.Return { return nvml.SUCCESS },
	}
}

// Closing does not wait for ever for a driver that hangs, in whichever call.
func TestListener_CloseGivesUpOnAHangingDriver(t *testing.T) {
	for _, in := range []string{"wait", "register", "create"} {
		t.Run(in, func(t *testing.T) {
			inside, hang := make(chan struct{}), make(chan struct{})
			defer close(hang)
			d := answering("GPU-0")
			l := newFakeLibrary(d)
			enter := sync.OnceFunc(func() { close(inside) })
			stop := func() { enter(); <-hang }
			switch in {
			case "wait":
				l.eventSet = func() (nvml.EventSet, nvml.Return) { return hangingSet(inside, hang), nvml.SUCCESS }
			case "register":
				d.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { stop(); return nvml.SUCCESS }
			case "create":
				l.eventSet = func() (nvml.EventSet, nvml.Return) { stop(); return nil, nvml.ERROR_UNKNOWN }
			}
			events := listen(l, newArchive().log)
			events.giveUp = 10 * time.Millisecond
			go events.watch([]watch{watching(d, newArchive().xids, "GPU-0")})
			<-inside
			events.watch([]watch{watching(d, newArchive().xids, "GPU-0")}) // another listing does not wait for it either
			if err := events.close(); !errors.Is(err, errHanging) {
				t.Errorf("closed with %v, want %v", err, errHanging)
			}
		})
	}
}

// A driver whose wait returns at once does not make the listener spin.
func TestListener_WaitThatReturnsAtOnceIsPaced(t *testing.T) {
	for name, back := range map[string]struct {
		event nvml.EventData
		ret   nvml.Return
		most  int // calls in ten seconds
	}{
		"timeout":               {nvml.EventData{}, nvml.ERROR_TIMEOUT, 10_000/waitFor + 1},
		"event of another type": {nvml.EventData{EventType: nvml.EventTypeClock}, nvml.SUCCESS, 10_000/waitFor + 1},
		"XID of another device": {nvml.EventData{EventType: xidEvents, EventData: 13}, nvml.SUCCESS, 10_000/waitFor + 1},
		"XIDs without an end":   {nvml.EventData{EventType: xidEvents, EventData: 79}, nvml.SUCCESS, 10_000 + 1},
		"failure":               {nvml.EventData{}, nvml.ERROR_UNKNOWN, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := answering("GPU-0")
				l := newFakeLibrary(d)
				calls := 0
				if name == "XIDs without an end" {
					back.event.Device = d.Raw()
				}
				l.eventSet = func() (nvml.EventSet, nvml.Return) {
					return &mock.EventSet{
						WaitFunc: func(uint32) (nvml.EventData, nvml.Return) { calls++; return back.event, back.ret },
						FreeFunc: func() nvml.Return { return nvml.SUCCESS },
					}, nvml.SUCCESS
				}
				events := listen(l, newArchive().log)
				events.watch([]watch{watching(d, newArchive().xids, "GPU-0")})
				time.Sleep(10 * time.Second)
				closing(t, events)
				if calls > back.most || calls == 0 {
					t.Errorf("%d waits in ten seconds, want between 1 and %d", calls, back.most)
				}
			})
		})
	}
}
