package snapshot

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// expecting is what a test expects now.
type expecting struct{ atomic.Pointer[Expected] }

func expect(count int, devices ...telemetry.Identity) *expecting {
	x := new(expecting)
	x.Store(&Expected{devices, count, "nvidia"})
	return x
}

func (x *expecting) now() Expected { return *x.Load() }

// told writes index, name and state of each device.
func told(t *testing.T, devices []Device) string {
	t.Helper()
	var out []string
	for i := range devices {
		d := &devices[i]
		name := strings.TrimPrefix(d.Identity.UUID, "GPU-")
		out = append(out, fmt.Sprintf("%s:%s:%v", d.Labels.Get("gpu_index"), name, state(t, d)))
	}
	return strings.Join(out, " ")
}

// A device that should be there is shown as missing, with what is known of it, until a source
// lists it; from then on it is lost when it goes.
func TestMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &driver{devices: []source.Device{newGPU(0), newGPU(1)}}
		x := expect(0, telemetry.Identity{UUID: "GPU-c", Index: 2, Vendor: "nvidia", Model: "M", PCI: "0000:03:00.0", Serial: "7"})
		f := run(t, Config{Sources: []source.Source{d.source("nvml")}, Expected: x.now})
		s := f.Snapshot(context.Background())
		if got := told(t, s.Devices); got != "0:a:ok 1:b:ok 2:c:missing" {
			t.Fatal(got)
		}
		if info := s.Devices[2].Read.Presence.Info; len(info) != 1 || info[0].Labels.Text() != `gpu_pci_address="0000:03:00.0",gpu_serial="7"` {
			t.Errorf("info %+v", info)
		}
		before := s.Devices[2].Labels.Text()
		d.set(func() { d.devices = append(d.devices, newGPU(2)) })
		time.Sleep(minute)
		s = f.Snapshot(context.Background())
		if got := told(t, s.Devices); got != "0:a:ok 1:b:ok 2:c:ok" || s.Devices[2].Labels.Text() != before || s.Devices[2].Identity.PCI != "0000:03:00.0" {
			t.Errorf("once listed: %s, %+v", got, s.Devices[2].Identity)
		}
		d.set(func() { d.devices = d.devices[:2] })
		x.Store(&Expected{})
		time.Sleep(minute)
		if got := told(t, f.Snapshot(context.Background()).Devices); got != "0:a:ok 1:b:ok 2:c:lost" {
			t.Errorf("gone again: %s", got)
		}
	})
}

// What is missing does not stay when it is no longer expected.
func TestNoLongerExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := expect(3, telemetry.Identity{UUID: "GPU-x", Index: -1, Vendor: "nvidia"})
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{newGPU(0)}}).source("nvml")}, Expected: x.now})
		if got := told(t, f.Snapshot(context.Background()).Devices); got != "0:a:ok 1:x:missing 2::missing" {
			t.Error(got)
		}
		x.Store(&Expected{})
		time.Sleep(minute)
		if got := told(t, f.Snapshot(context.Background()).Devices); got != "0:a:ok" {
			t.Error(got)
		}
	})
}

// A number alone is made up with nameless devices, and one fewer with each that is listed.
func TestExpectedNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &driver{devices: []source.Device{newGPU(0), newGPU(1)}}
		f := run(t, Config{Sources: []source.Source{d.source("nvml")}, Expected: expect(4).now, Relist: time.Hour})
		s := f.Snapshot(context.Background())
		if got := told(t, s.Devices); got != "0:a:ok 1:b:ok 2::missing 3::missing" || s.Devices[3].Labels.Text() != `gpu_index="3",gpu_vendor="nvidia"` {
			t.Errorf("%s, %s", got, s.Devices[3].Labels.Text())
		}
		nameless := s.Devices[2].Labels
		for _, c := range []struct {
			index int
			want  string
		}{
			{3, "0:a:ok 1:b:ok 2::missing 3:d:ok"},
			{2, "0:a:ok 1:b:ok 2:c:ok 3:d:ok"},
			{4, "0:a:ok 1:b:ok 2:c:ok 3:d:ok 4:e:ok"},
		} {
			f.devices.meet("nvml", &newGPU(c.index).id)
			for _, k := range f.devices.known {
				k.found = true
			}
			got := told(t, f.devices.compose(nil, absence{}, absence{}))
			if got = strings.ReplaceAll(got, "lost", "ok"); got != strings.ReplaceAll(c.want, "missing", "ok") {
				t.Errorf("with GPU %d: %s, want %s", c.index, got, c.want)
			}
			if c.index == 3 && f.devices.compose(nil, absence{}, absence{})[2].Labels != nameless {
				t.Error("labels of a nameless device are made anew")
			}
		}
	})
}

// Only devices that are read are expected, by number too.
func TestOnlyChosenDevicesAreExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, Config{
			Sources:  []source.Source{(&driver{devices: []source.Device{newGPU(0), newGPU(1)}}).source("nvml")},
			Expected: expect(4, telemetry.Identity{UUID: "GPU-x", Index: 6, Vendor: "nvidia"}, telemetry.Identity{PCI: "0000:07:00.0", Index: -1, Vendor: "nvidia"}).now,
			Devices:  func(id *telemetry.Identity) bool { return id.Index == 0 || id.Index == 2 },
		})
		if got := told(t, f.Snapshot(context.Background()).Devices); got != "0:a:ok 2::missing" {
			t.Error(got)
		}
	})
}

// Whoever is first, the source or what expects the device: it is one, and a device that a source
// lists bears its driver's number.
func TestExpectedMeetsListed(t *testing.T) {
	type id = telemetry.Identity
	a := id{UUID: "a", PCI: "0000:01:00.0", Index: 0, Vendor: "nvidia", Serial: "1"}
	b := id{UUID: "b", PCI: "0000:02:00.0", Index: 1, Vendor: "nvidia", Serial: "1"}
	for name, c := range map[string]struct {
		expected []id
		listed   []id
		want     string
	}{
		"by UUID, in another slot":            {[]id{{UUID: "a", PCI: "0000:09:00.0", Vendor: "nvidia"}}, []id{a}, "0:a:found"},
		"by PCI address":                      {[]id{{PCI: a.PCI, Index: -1, Vendor: "nvidia"}, {PCI: b.PCI, Index: -1, Vendor: "nvidia"}}, []id{b, a}, "0:a:found 1:b:found"},
		"two boards with one serial number":   {[]id{a, b}, []id{b}, "0:a:missing 1:b:found"},
		"the driver counts without the other": {[]id{a, b}, []id{{UUID: "b", PCI: b.PCI, Index: 0, Vendor: "nvidia"}}, "0:b:found 1:a:missing"},
		"another board in its slot":           {[]id{a, b}, []id{{UUID: "c", PCI: a.PCI, Index: 0, Vendor: "nvidia"}, b}, "0:c:found 1:b:found"},
		"each in the other's slot":            {[]id{a, b}, []id{{UUID: "b", PCI: a.PCI, Index: 0, Vendor: "nvidia"}, {UUID: "a", PCI: b.PCI, Index: 1, Vendor: "nvidia"}}, "0:b:found 1:a:found"},
		"its place is not known":              {[]id{{UUID: "x", Index: -1, Vendor: "nvidia"}}, []id{{UUID: "c", PCI: a.PCI, Index: 0, Vendor: "nvidia"}}, "0:c:found 1:x:missing"},
		"another vendor's":                    {[]id{{PCI: a.PCI, Index: -1, Vendor: "nvidia"}}, []id{{UUID: "m", PCI: "0000:05:00.0", Vendor: "amd"}}, "0:m:found 0::missing"},
		"no UUID in the listing":              {[]id{{PCI: a.PCI, Index: -1, Vendor: "nvidia"}}, []id{{PCI: a.PCI, Index: 4, Vendor: "nvidia"}}, "4::found"},
	} {
		for _, first := range []string{"expected", "listed", "listed and expected again"} {
			r := registry{sources: []string{"nvml"}, chosen: func(*telemetry.Identity) bool { return true }}
			if first == "expected" {
				r.expect(Expected{Devices: c.expected})
			}
			for i := range c.listed {
				r.leave(r.meet("nvml", &c.listed[i]))
			}
			if first != "expected" {
				r.expect(Expected{Devices: c.expected})
			}
			if first == "listed and expected again" {
				r.expect(Expected{Devices: c.expected})
			}
			got := strings.ReplaceAll(told(t, r.compose(nil, absence{}, absence{})), "lost", "found")
			if got != c.want {
				t.Errorf("%s, %s first: %s, want %s", name, first, got, c.want)
			}
		}
	}
}

// A device that was missing and is listed while a round is under way stays missing until it is asked.
func TestMissingUntilAsked(t *testing.T) {
	r := registry{sources: []string{"nvml"}, chosen: func(*telemetry.Identity) bool { return true }}
	r.expect(Expected{Count: 1, Devices: []telemetry.Identity{{UUID: "a", Vendor: "nvidia"}}})
	k := r.meet("nvml", &telemetry.Identity{UUID: "a", Vendor: "nvidia"})
	if got := told(t, r.compose(nil, absence{}, absence{})); got != "0:a:missing" {
		t.Error(got)
	}
	answered := []slot{{worker: &worker{source: "nvml", known: k}, reading: reading{device: new(telemetry.Device)}}}
	if got := told(t, r.compose(answered, absence{}, absence{})); got != "0:a:ok" {
		t.Error(got)
	}
}

// Nothing is missing before the sources have listed what there is, and whatever is missing is in the
// first picture after that.
func TestMissingFromTheFirstPicture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := (&driver{devices: []source.Device{newGPU(0)}}).source("nvml")
		quick := src.Open
		src.Open = func(ctx context.Context) (source.Reader, error) { time.Sleep(time.Second); return quick(ctx) }
		f := run(t, Config{Sources: []source.Source{src}, Expected: func() Expected {
			time.Sleep(300 * time.Millisecond)
			return Expected{Count: 2, Vendor: "nvidia"}
		}})
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if s := f.Snapshot(patience(t, time.Nanosecond)); len(s.Devices) != 0 {
			t.Errorf("while the source is being opened: %s", told(t, s.Devices))
		}
		time.Sleep(600 * time.Millisecond)
		if got := told(t, f.Snapshot(context.Background()).Devices); got != "0:a:ok 1::missing" {
			t.Errorf("first picture: %s", got)
		}
		if err := f.Release(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
		f.Acquire()
		synctest.Wait()
		if got := told(t, f.Snapshot(context.Background()).Devices); got != "0:a:released 1::released" {
			t.Errorf("while the source is being opened again: %s", got)
		}
	})
}

// While devices are released nobody can say which are missing.
func TestMissingWhileReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, Config{Sources: []source.Source{(&driver{devices: []source.Device{newGPU(0)}}).source("nvml")}, Expected: expect(2).now})
		f.Snapshot(context.Background())
		if err := f.Release(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
		if got := told(t, f.Snapshot(context.Background()).Devices); got != "0:a:released 1::released" || len(f.Released().Devices) != 1 {
			t.Errorf("%s; let go of %v", got, f.Released().Devices)
		}
		f.Acquire()
		time.Sleep(2 * time.Second)
		if got := told(t, f.Snapshot(context.Background()).Devices); got != "0:a:ok 1::missing" {
			t.Error(got)
		}
	})
}

// What should be there is shown though its driver hangs when it is opened, and though whoever says
// so panics or hangs the first scrape is answered.
func TestExpectedWhateverHangs(t *testing.T) {
	for name, c := range map[string]struct {
		open     func(stop chan struct{})
		expected func(stop chan struct{}) Expected
		want     string
	}{
		"driver":      {func(stop chan struct{}) { <-stop }, func(chan struct{}) Expected { return Expected{Count: 1, Vendor: "nvidia"} }, "0::missing"},
		"who expects": {func(chan struct{}) {}, func(stop chan struct{}) Expected { <-stop; return Expected{} }, "0:a:ok"},
		"panics":      {func(chan struct{}) {}, func(chan struct{}) Expected { panic("x") }, "0:a:ok"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stop := make(chan struct{})
				defer close(stop)
				open := func(context.Context) (source.Reader, error) {
					c.open(stop)
					return &driver{devices: []source.Device{newGPU(0)}}, nil
				}
				f := run(t, Config{Sources: []source.Source{{Name: "nvml", Open: open}}, Expected: func() Expected { return c.expected(stop) }})
				start := time.Now()
				s := f.Snapshot(context.Background())
				if got := told(t, s.Devices); got != c.want || time.Since(start) > 4*time.Second {
					t.Errorf("%s after %v, want %s", got, time.Since(start), c.want)
				}
			})
		})
	}
}
