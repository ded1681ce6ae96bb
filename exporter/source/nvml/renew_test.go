//go:build cgo

package nvml

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// relist is how often the devices are listed in these tests.
const relist = firstRenewal

// losing is a device that is lost as long as told so.
func losing(uuid string, lost *bool) *fakeDevice {
	d := answering(uuid)
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) {
		if *lost {
			return 0, nvml.ERROR_GPU_IS_LOST
		}
		return 100_000, nvml.SUCCESS
	}
	return d
}

// why reads a device, and says why it does not answer.
func (n *node) why(h *handle) *metric.Reason { return h.Read(n.Context(), new(telemetry.Device)) }

// The library is initialised anew for a device that stays lost, ever less often: the others wait meanwhile.
func TestRenewalsAreFewer(t *testing.T) {
	lost := true
	l := newFakeLibrary(losing("GPU-0", &lost), answering("GPU-1"))
	n := started(t, l)
	h, spent := n.list(), time.Duration(0)
	var at []time.Duration
	for spent < 4*time.Hour {
		if why := n.why(h[0]); why != metric.Lost {
			t.Fatalf("read with %v", why)
		}
		n.read(h[1])
		n.turn(relist)
		spent += relist
		before := l.inits
		if again := n.list(); !slices.Equal(h, again) {
			t.Fatal("the devices are not the same")
		}
		if l.inits != before {
			at = append(at, spent)
		}
	}
	want := []time.Duration{ // the device may be back by itself, so the second listing is the first to try
		time.Minute, 90 * time.Second, 150 * time.Second, 270 * time.Second, 510 * time.Second, 990 * time.Second, 1950 * time.Second,
		3870 * time.Second, 7470 * time.Second, 11070 * time.Second,
	}
	if !slices.Equal(at, want) {
		t.Errorf("initialised anew after\n%v, want\n%v", at, want)
	}

	// Back, and lost again: it begins anew.
	lost = false
	n.read(h[0])
	n.turn(relist)
	n.list()
	lost = true
	n.why(h[0])
	before := l.inits
	for range 2 {
		n.turn(relist)
		n.list()
	}
	if l.inits != before+1 {
		t.Errorf("lost once more, it was initialised %d times in a minute, want once", l.inits-before)
	}
}

// A device that is back is not waited for, though nobody reads it; one that is still lost is, as its
// samples tell.
func TestRenewalsWithoutReads(t *testing.T) {
	for _, back := range []bool{true, false} {
		lost := true
		d := losing("GPU-0", &lost)
		d.GetSamplesFunc = func(nvml.SamplingType, uint64) (nvml.ValueType, []nvml.Sample, nvml.Return) {
			if lost {
				return 0, nil, nvml.ERROR_GPU_IS_LOST
			}
			return 0, nil, nvml.ERROR_NOT_FOUND
		}
		l := newFakeLibrary(d)
		n := started(t, l)
		h := n.list()[0]
		n.why(h)
		for range 2 {
			n.turn(relist)
			n.list()
		}
		if l.inits != 2 {
			t.Fatalf("initialised %d times, want twice", l.inits)
		}
		lost = !back
		for range 20 {
			h.Sample(t.Context())
			n.turn(relist)
			n.list()
		}
		if more := l.inits > 2; more == back {
			t.Errorf("back: %v; initialised %d times more", back, l.inits-2)
		}
	}
}

// enumerating finds devices when it is initialised alone, as the driver does.
type enumerating struct {
	*fakeLibrary
	found int
}

func (l *enumerating) Init() nvml.Return {
	l.found = len(l.devices)
	return l.fakeLibrary.Init()
}

func (l *enumerating) DeviceGetCount() (int, nvml.Return) { return l.found, nvml.SUCCESS }

// A device that came onto the bus is found by initialising anew, and the others stay who they are.
func TestRenewalForAnother(t *testing.T) {
	l := &enumerating{fakeLibrary: newFakeLibrary(answering("GPU-0"))}
	cfg, onBus := config(), 1
	cfg.OnBus = func() int { return onBus }
	r, err := open(l, cfg, newArchive(), everything())
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, r)
	n := &node{TB: t, reader: r}
	first := n.list()[0]
	n.list()
	n.list()
	if l.inits != 1 {
		t.Errorf("initialised %d times with all of the bus listed", l.inits)
	}
	onBus, l.devices = 2, append(l.devices, answering("GPU-1"))
	for range 3 {
		n.list()
	}
	if all := n.list(); len(all) != 2 || all[0] != first || l.inits != 2 {
		t.Errorf("%d devices, initialised %d times", len(all), l.inits)
	}
}

// A device that hangs puts it off, and the others are read meanwhile.
func TestRenewalPutOff(t *testing.T) {
	lost := true
	hanging, hang := make(chan struct{}), make(chan struct{})
	stuck := answering("GPU-1")
	stuck.GetPowerUsageFunc = func() (uint32, nvml.Return) {
		close(hanging)
		<-hang
		return 0, nvml.SUCCESS
	}
	l := newFakeLibrary(losing("GPU-0", &lost), stuck, answering("GPU-2"))
	n := started(t, l)
	h := n.list()
	n.why(h[0])
	done := make(chan *metric.Reason)
	go func() { done <- h[1].Read(context.Background(), new(telemetry.Device)) }()
	<-hanging
	for range 3 {
		n.turn(relist)
		n.list()
		n.read(h[2])
	}
	if l.inits != 1 {
		t.Errorf("initialised %d times while a device hangs", l.inits)
	}
	close(hang)
	if why := <-done; why != nil {
		t.Errorf("after hanging: %s", why.Text)
	}
	stuck.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.SUCCESS }
	n.turn(time.Hour)
	n.list()
	if l.inits != 2 {
		t.Errorf("initialised %d times when none hangs any more, want twice", l.inits)
	}
	n.read(h[1])
}

// What was counted goes on over it: XIDs, busy time, seconds of the profile.
func TestCountsOutliveRenewal(t *testing.T) {
	lost := false
	d := losing("GPU-0", &lost)
	at := 100.
	d.GetSamplesFunc = func(of nvml.SamplingType, _ uint64) (nvml.ValueType, []nvml.Sample, nvml.Return) {
		at++
		return nvml.VALUE_TYPE_UNSIGNED_INT, []nvml.Sample{sample(at, 100)}, nvml.SUCCESS
	}
	l := newFakeLibrary(d)
	averaging(l, map[nvml.GpmMetricId]float64{2: 50}, nil)
	n := started(t, l)
	h := n.list()[0]
	for range 3 {
		h.Sample(t.Context())
		n.turn(5 * time.Second)
	}
	l.events <- nvml.EventData{Device: d.Raw(), EventType: xidEvents, EventData: 79}
	var out *telemetry.Device
	eventually(t, "the XID", func() bool {
		out = n.read(h)
		return errorsOf(out.XID.Errors)["79"] == 1
	})
	busy, active := n.number("busy time", out.Utilization.BusyTime), n.number("SM time", out.Profiling.SMActiveTime)
	if busy == 0 || active == 0 {
		t.Fatalf("%v s busy, %v s of SM", busy, active)
	}
	lost = true
	n.why(h)
	for range 2 {
		n.turn(relist)
		n.list()
	}
	lost = false
	if l.inits != 2 || n.list()[0] != h {
		t.Fatalf("initialised %d times; the same: %v", l.inits, n.list()[0] == h)
	}
	out = n.read(h)
	want(t, "SM time", out.Profiling.SMActiveTime, active)
	if x := errorsOf(out.XID.Errors); x["79"] != 1 {
		t.Errorf("XIDs %v", x)
	}
	if again := n.number("busy time", out.Utilization.BusyTime); again < busy {
		t.Errorf("%v s busy, %v before", again, busy)
	}
	l.events <- nvml.EventData{Device: d.Raw(), EventType: xidEvents, EventData: 79}
	eventually(t, "an XID after it", func() bool { return errorsOf(n.read(h).XID.Errors)["79"] == 2 })
}

// When it fails, the reader is closed; a library that is not open is not shut down.
func TestRenewalFails(t *testing.T) {
	lost := true
	l := newFakeLibrary(losing("GPU-0", &lost))
	r, err := open(l, config(), newArchive(), everything())
	if err != nil {
		t.Fatal(err)
	}
	n := &node{TB: t, reader: r}
	h := n.list()[0]
	n.why(h)
	n.list()
	l.init = nvml.ERROR_DRIVER_NOT_LOADED
	if _, err := n.Devices(t.Context()); err == nil {
		t.Fatal("listed by a driver that is gone")
	}
	if why := n.why(h); why != metric.Lost {
		t.Errorf("read with %v", why)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if l.users != 0 || len(l.order) != 2 { // the event set, the library
		t.Errorf("%d users, released %v", l.users, l.order)
	}
}

// A listener that does not come back leaves the library open, also when the reader is then closed.
func TestRenewalLeavesLibraryOpen(t *testing.T) {
	lost := true
	l := newFakeLibrary(losing("GPU-0", &lost))
	waiting, hang := make(chan struct{}), make(chan struct{})
	defer close(hang)
	l.eventSet = func() (nvml.EventSet, nvml.Return) { return hangingSet(waiting, hang), nvml.SUCCESS }
	r, err := open(l, config(), newArchive(), everything())
	if err != nil {
		t.Fatal(err)
	}
	r.events.giveUp = 10 * time.Millisecond
	n := &node{TB: t, reader: r}
	h := n.list()[0]
	<-waiting
	n.why(h)
	n.list()
	if _, err := r.Devices(t.Context()); !errors.Is(err, errHanging) {
		t.Errorf("listed with %v, want %v", err, errHanging)
	}
	if err := r.Close(); !errors.Is(err, errHanging) {
		t.Errorf("closed with %v, want %v", err, errHanging)
	}
	if len(l.order) != 0 || l.users != 1 {
		t.Errorf("released %v under a thread that is in the library", l.order)
	}
}
