//go:build cgo

package nvml

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// What was counted of a device that was lost goes on: XIDs, busy time, seconds of the profile.
func TestRenewal_CountsOfTheLostDeviceGoOn(t *testing.T) {
	lost := false
	d := losing("GPU-0", &lost)
	at := 100.
	d.GetSamplesFunc = func(of nvml.SamplingType, _ uint64) (nvml.ValueType, []nvml.Sample, nvml.Return) {
		at++
		return nvml.VALUE_TYPE_UNSIGNED_INT, []nvml.Sample{sample(at, 100)}, nvml.SUCCESS
	}
	l := newFakeLibrary(d)
	averaging(l, map[nvml.GpmMetricId]float64{2: 50}, nil)
	n, _ := recovering(t, l)
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
	lost = false
	n.list()
	h.lost.Store(true) // the session does not know that it is back
	for range 2 {
		n.turn(relist)
		n.lists()
	}
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

// slowInit is a driver whose Init takes long, and fails some times, after the first.
type slowInit struct {
	*fakeLibrary
	takes time.Duration
	fails int
}

func (l *slowInit) Init() nvml.Return {
	if l.inits > 0 {
		time.Sleep(l.takes)
		if l.fails > 0 {
			l.fails--
			l.inits++
			return nvml.ERROR_UNKNOWN
		}
	}
	return l.fakeLibrary.Init()
}

// While the session is renewed, reads of healthy devices wait: none finds its device lost, and none has a gap
// in its profile, also when Init fails at first.
func TestRenewal_HealthyDevicesAreReadThroughout(t *testing.T) {
	for _, fails := range []int{0, 2} {
		lost := true
		healthy := answering("GPU-1")
		var load atomic.Int64
		healthy.GetSamplesFunc = func(of nvml.SamplingType, seen uint64) (nvml.ValueType, []nvml.Sample, nvml.Return) {
			s := sample(float64(load.Add(1)), 100)
			return nvml.VALUE_TYPE_UNSIGNED_INT, []nvml.Sample{s}, nvml.SUCCESS
		}
		l := &slowInit{newFakeLibrary(losing("GPU-0", &lost), healthy), 200 * time.Millisecond, fails}
		averaging(l.fakeLibrary, map[nvml.GpmMetricId]float64{2: 50}, nil)
		p := &fakeProber{lib: l.fakeLibrary}
		cfg, ahead, begun := config(), new(atomic.Int64), time.Now()
		cfg.startProbe = p.start
		cfg.now = func() time.Time { return begun.Add(time.Duration(ahead.Load())) }
		r, err := open(l, cfg, newArchive(), everything())
		if err != nil {
			t.Fatal(err)
		}
		n := &node{TB: t, reader: r, ahead: ahead}
		h := n.list()
		n.why(h[0])
		for range 3 {
			h[1].Sample(t.Context())
			n.turn(samplePeriod)
		}
		before := n.read(h[1])
		lost = false
		h[0].lost.Store(true)

		stop := make(chan struct{})
		var reads sync.WaitGroup
		reads.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond): // some begin while the session is renewed
				}
				out := new(telemetry.Device)
				if why := h[1].Read(context.Background(), out); why != nil {
					t.Errorf("a healthy device is read with %q during the renewal", why.Text)
				}
				if out.XID.Errors == nil {
					t.Error("a healthy device has no XID counters during the renewal")
				}
				if why := out.Profiling.SMActive.Why(); why != nil {
					t.Errorf("a healthy device has no profile during the renewal: %s", why.Text)
				}
			}
		})
		n.lists()
		n.turn(time.Second)
		n.lists()
		close(stop)
		reads.Wait()
		if l.inits < 2 || l.fails != 0 {
			t.Fatalf("initialised %d times, %d failures to come", l.inits, l.fails)
		}
		n.read(h[0])
		after := n.read(h[1])
		for what, of := range map[string]func(*telemetry.Device) metric.Value{
			"busy time": func(d *telemetry.Device) metric.Value { return d.Utilization.BusyTime },
			"SM time":   func(d *telemetry.Device) metric.Value { return d.Profiling.SMActiveTime },
			"SM active": func(d *telemetry.Device) metric.Value { return d.Profiling.SMActive },
		} {
			if a, b := n.number(what, of(before)), n.number(what, of(after)); b < a {
				t.Errorf("%s: %v after the renewal, %v before", what, b, a)
			}
		}
		closed(t, r)
		if n := l.samples.Load(); n != 0 {
			t.Errorf("%d samples of the profiler are still held", n)
		}
	}
}

// A device that hangs puts the renewal off, and the others are read meanwhile.
func TestRenewal_IsPutOffWhileADeviceHangs(t *testing.T) {
	lost := true
	hanging, hang := make(chan struct{}), make(chan struct{})
	stuck := answering("GPU-1")
	block := sync.OnceFunc(func() { close(hanging); <-hang })
	stuck.GetClockInfoFunc = func(nvml.ClockType) (uint32, nvml.Return) { block(); return 1000, nvml.SUCCESS }
	l := newFakeLibrary(losing("GPU-0", &lost), stuck, answering("GPU-2"))
	n, _ := recovering(t, l)
	h := n.list()
	n.why(h[0])
	lost = false
	h[0].lost.Store(true)
	done := make(chan *metric.Reason)
	go func() { done <- h[1].Read(context.Background(), new(telemetry.Device)) }()
	<-hanging
	for range 3 {
		n.turn(relist)
		n.lists()
		n.read(h[2])
	}
	if l.inits != 1 {
		t.Errorf("initialised %d times while a device hangs", l.inits)
	}
	close(hang)
	if why := <-done; why != nil {
		t.Errorf("after hanging: %s", why.Text)
	}
	n.turn(time.Hour)
	n.lists()
	if l.inits != 2 {
		t.Errorf("initialised %d times when none hangs any more, want twice", l.inits)
	}
	n.read(h[1])
}

// When Init fails for good, the reader is closed; a library that is not open is not shut down.
func TestRenewal_InitFailsForGood(t *testing.T) {
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

// A listener that does not come back leaves the library open, and the devices are read all the same.
func TestRenewal_ListenerThatHangsLeavesTheSessionOpen(t *testing.T) {
	lost := true
	l := newFakeLibrary(losing("GPU-0", &lost), answering("GPU-1"))
	waiting, hang := make(chan struct{}), make(chan struct{})
	defer close(hang)
	hanging := hangingSet(waiting, hang)
	var sets atomic.Int32
	l.eventSet = func() (nvml.EventSet, nvml.Return) {
		if sets.Add(1) == 1 {
			return hanging, nvml.SUCCESS
		}
		return (&fakeLibrary{events: l.events}).EventSetCreate()
	}
	p := &fakeProber{lib: l}
	cfg := config()
	cfg.startProbe = p.start
	r, err := open(l, cfg, newArchive(), everything())
	if err != nil {
		t.Fatal(err)
	}
	r.events.giveUp = 10 * time.Millisecond
	n := &node{TB: t, reader: r}
	h := n.list()
	<-waiting
	n.why(h[0])
	lost = false
	h[0].lost.Store(true)
	n.lists()
	n.lists()
	n.read(h[1])
	if l.inits != 1 || p.probes != 1 {
		t.Errorf("initialised %d times after %d probes", l.inits, p.probes)
	}
	l.events <- nvml.EventData{Device: l.devices[1].Raw(), EventType: xidEvents, EventData: 13}
	eventually(t, "an XID by the next listener", func() bool { return countOf(h[1].history.xids, 13) == 1 })
	if err := r.Close(); !errors.Is(err, errHanging) {
		t.Errorf("closed with %v, want %v", err, errHanging)
	}
	if l.users != 1 {
		t.Error("the library was shut down under a thread that is in it")
	}
}

// The XID counters of a healthy device stay in its readings while the listener of the next session starts.
func TestRenewal_XIDsStayWhileTheListenerStarts(t *testing.T) {
	lost := true
	hold := make(chan struct{})
	healthy := answering("GPU-1")
	var calls atomic.Int32
	healthy.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return {
		if calls.Add(1) > 1 {
			<-hold
		}
		return nvml.SUCCESS
	}
	n, _ := recovering(t, newFakeLibrary(losing("GPU-0", &lost), healthy))
	h := n.list()
	n.why(h[0])
	lost = false
	h[0].lost.Store(true)
	n.lists()
	n.turn(relist)
	n.lists()
	if out := n.read(h[1]); out.XID.Errors == nil {
		t.Error("the XIDs of a healthy device are absent while the listener starts")
	}
	close(hold)
}
