//go:build cgo

package nvml_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/source/nvml"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// clock is turned by a test.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) turn(d time.Duration) { c.ahead.Add(int64(d)) }

// inits is how often the library was initialised.
func (d driver) inits() int { return fakenvml.Stats(d, os.Getenv("FAKENVML_STATS"))["nvmlInit_v2"] }

// xids are the codes told of a device.
func xids(d *telemetry.Device) string {
	var out []string
	for _, x := range d.XID.Errors {
		out = append(out, x.Labels.Get("gpu_xid"))
	}
	return strings.Join(out, " ")
}

// noticed delivers when the log says that a probe has found nothing.
type noticed chan struct{}

func (n noticed) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "does not find it either") {
		n <- struct{}{}
	}
	return len(line), nil
}

// recovers lists the devices as hours pass until a probe has found a missing one and the session is renewed.
func (d driver) recovers(r source.Reader, at *clock) {
	d.Helper()
	deadline := time.After(20 * time.Second)
	for {
		at.turn(time.Hour)
		d.list(r)
		select {
		case <-r.(source.Notifier).Changed():
			d.list(r)
			return
		case <-deadline:
			d.Fatal("no probe finds the missing device")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// why reads a device, whether or not it answers.
func (d driver) why(from source.Device) (*telemetry.Device, *metric.Reason) {
	out := new(telemetry.Device)
	return out, from.Read(d.Context(), out)
}

// A device that has fallen off the bus comes back with the next initialising, and the others, which
// the driver numbers anew meanwhile, stay who they are.
func TestDriverFallen(t *testing.T) {
	alone(t, "", func(d driver) {
		at := new(clock)
		healthy := []string{"gpus 3", "xid 1 79", "xid 2 13"}
		fallen := append(healthy, "fallen 1")
		d.tell(healthy...)
		logged := make(noticed)
		r := d.openAs(nvml.Config{Logger: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))}.At(at.now))
		devices := d.list(r)
		for deadline := time.Now().Add(10 * time.Second); xids(d.read(devices[1])) != "79" || xids(d.read(devices[2])) != "13"; {
			if time.Now().After(deadline) {
				d.Fatal("the XIDs never came")
			}
		}
		for _, x := range devices {
			x.(source.Sampled).Sample(d.Context())
		}
		time.Sleep(time.Second)
		busy, ok := d.read(devices[2]).Utilization.BusyTime.Get()
		if !ok || busy == 0 {
			d.Fatal("not busy")
		}

		check := func(when string, gone bool) {
			d.Helper()
			if again := d.list(r); len(again) != 3 || again[0] != devices[0] || again[1] != devices[1] || again[2] != devices[2] {
				d.Fatalf("%s: the devices are not the same", when)
			}
			for i, x := range devices {
				out, why := d.why(x)
				if gone && i == 1 {
					if why != metric.Lost {
						d.Errorf("%s: the one that has fallen is read with %v", when, why)
					}
					continue
				}
				if why != nil {
					d.Errorf("%s: GPU %d: %s", when, i, why.Text)
				}
				d.want(when+": draw", out.Power.Draw, float64(300+10*i))
				if id := x.Identity(); id.Index != i {
					d.Errorf("%s: GPU %d is called %d", when, i, id.Index)
				}
			}
		}
		d.tell(fallen...)
		if _, why := d.why(devices[1]); why != metric.Lost {
			d.Errorf("the one that has fallen is read with %v", why)
		}
		check("fallen", true)
		d.list(r)
		at.turn(time.Hour)
		d.list(r)
		<-logged // the probe finds nothing
		check("looked for, and it is still away", true)
		if n := d.inits(); n != 1 {
			d.Errorf("initialised %d times, want once", n)
		}
		d.tell(healthy...)
		check("it could be back, which Init alone finds", true)
		d.recovers(r, at)
		check("back", false)
		if n := d.inits(); n != 2 {
			d.Errorf("initialised %d times, want twice", n)
		}
		at.turn(time.Hour)
		check("long after", false)
		check("and once more", false)
		if n := d.inits(); n != 2 {
			d.Errorf("initialised %d times with all healthy, want twice", n)
		}
		if a, b := xids(d.read(devices[1])), xids(d.read(devices[2])); a != "79" || b != "13" {
			d.Errorf("XIDs %q and %q", a, b)
		}
		if n, ok := d.read(devices[2]).Utilization.BusyTime.Get(); !ok || n < busy {
			d.Errorf("%v s busy, %v before", n, busy)
		}
		d.close(r)
		if held := d.held(); held != [3]int{} {
			d.Errorf("users, event sets and samples held in the end are %v", held)
		}
	})
}

// onBus puts a device that NVIDIA's driver is bound to onto the bus.
func (d driver) onBus(sysfs, address string) {
	d.Helper()
	dir := filepath.Join(sysfs, "bus", "pci", "devices", address)
	err := errors.Join(os.MkdirAll(dir, 0o755), os.Symlink("../../../bus/pci/drivers/nvidia", filepath.Join(dir, "driver")))
	for name, text := range map[string]string{"class": "0x030200\n", "vendor": "0x10de\n", "device": "0x2330\n"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	if err != nil {
		d.Fatal(err)
	}
}

// A device that was put in is found, once the bus has it.
func TestDriverAdded(t *testing.T) {
	alone(t, "", func(d driver) {
		at, sysfs := new(clock), d.TempDir()
		d.tell("gpus 1", "enumerate at-init")
		d.onBus(sysfs, "0000:1a:00.0")
		r := d.openAs(nvml.Config{Sys: sysfs}.At(at.now))
		defer d.close(r)
		first := d.list(r)[0]
		d.tell("gpus 2", "enumerate at-init")
		for range 3 {
			at.turn(time.Minute)
			if n := len(d.list(r)); n != 1 {
				d.Fatalf("%d devices before the bus has another", n)
			}
		}
		d.onBus(sysfs, "0000:1b:00.0")
		d.recovers(r, at)
		devices := d.list(r)
		if len(devices) != 2 || devices[0] != first || d.inits() != 2 {
			d.Fatalf("%d devices, initialised %d times", len(devices), d.inits())
		}
		d.want("draw of the one that was there", d.read(first).Power.Draw, 300)
		d.want("draw of the one that came", d.read(devices[1]).Power.Draw, 310)
	})
}

// While a device hangs the library is not taken from under it, and the others are read.
func TestDriverHangsWhileAnotherIsLost(t *testing.T) {
	alone(t, "", func(d driver) {
		at := new(clock)
		d.tell("gpus 3")
		r := d.openAs(nvml.Config{}.At(at.now))
		defer d.close(r)
		devices := d.list(r)
		d.tell("gpus 3", "fallen 1")
		d.why(devices[1])
		d.tell("gpus 3", "hang nvmlDeviceGetPowerUsage 0") // the fallen one could be back
		if _, why := d.why(devices[1]); why != metric.Lost {
			d.Errorf("the lost one is read with %v", why)
		}
		done := make(chan *metric.Reason, 1)
		go func() { done <- devices[0].Read(context.Background(), new(telemetry.Device)) }()
		time.Sleep(50 * time.Millisecond)
		for range 20 { // the probe hangs at the same device
			at.turn(time.Hour)
			d.list(r)
			time.Sleep(50 * time.Millisecond)
		}
		d.want("draw of the third", d.read(devices[2]).Power.Draw, 320)
		if n := d.inits(); n != 1 {
			d.Errorf("initialised %d times under a thread that is in the library", n)
		}
		d.tell("gpus 3")
		if why := <-done; why != nil {
			d.Errorf("after hanging: %s", why.Text)
		}
	})
}

// A driver that is unloaded is gone, and is found again when it is back; what it counts begins anew.
func TestDriverUnloaded(t *testing.T) {
	alone(t, "", func(d driver) {
		d.tell("gpus 2")
		src := nvml.New(nvml.Config{Library: d.library})
		open := func() (source.Reader, error) { return src.Open(d.Context()) }
		r, err := open()
		if err != nil {
			d.Fatal(err)
		}
		gpu := d.list(r)[0]
		gpu.(source.Sampled).Sample(d.Context())
		before, _ := d.read(gpu).Power.Energy.Get()
		time.Sleep(300 * time.Millisecond)
		d.tell("gpus 2", "unload")
		if _, why := d.why(gpu); why != metric.Lost {
			d.Errorf("read with %v", why)
		}
		if _, err := r.Devices(d.Context()); err == nil {
			d.Error("a driver that is gone lists devices")
		}
		d.close(r)
		if held := d.held(); held != [3]int{} {
			d.Errorf("users, event sets and samples held of a driver that is gone are %v", held)
		}
		if _, err := open(); !errors.Is(err, source.ErrAbsent) {
			d.Errorf("opened with %v, want %v", err, source.ErrAbsent)
		}
		d.tell("gpus 2")
		if r, err = open(); err != nil {
			d.Fatal(err)
		}
		defer d.close(r)
		after, ok := d.read(d.list(r)[0]).Power.Energy.Get()
		if !ok || after >= before {
			d.Errorf("%v J of a driver just loaded, %v before", after, before)
		}
	})
}

// Sixty-four devices, two of one board, two of one UUID, one that changes its own.
func TestDriverIdentities(t *testing.T) {
	alone(t, "", func(d driver) {
		one := []string{"gpus 64", "serial 3 165", "serial 4 165", "serial 5 none", "uuid 7 GPU-same", "uuid 8 GPU-same", "pci 9 00000001:AF:00.0"}
		d.tell(one...)
		r := d.open()
		defer d.close(r)
		devices := d.list(r)
		if len(devices) != 63 {
			d.Fatalf("%d devices, want all but the second of one UUID", len(devices))
		}
		byIndex := map[int]source.Device{}
		for _, x := range devices {
			byIndex[x.Identity().Index] = x
			d.want(x.Identity().UUID, d.read(x).Power.Draw, float64(300+10*x.Identity().Index))
		}
		if a, b, c := byIndex[3].Identity(), byIndex[4].Identity(), byIndex[5].Identity(); a.Serial != "165" || b.Serial != "165" || c.Serial != "" || a.UUID == b.UUID {
			d.Errorf("serials %q, %q and %q", a.Serial, b.Serial, c.Serial)
		}
		if byIndex[7] == nil || byIndex[8] != nil {
			d.Error("of two with one UUID the first is not it")
		}
		if pci := byIndex[9].Identity().PCI; pci != "0001:af:00.0" {
			d.Errorf("at %s", pci)
		}
		d.tell(append(one, "uuid 10 GPU-new")...)
		again := d.list(r)
		if len(again) != 64 {
			d.Fatalf("%d devices, want the old name and the new", len(again))
		}
		if _, why := d.why(byIndex[10]); why != metric.Lost {
			d.Errorf("under its old UUID it is read with %v", why)
		}
		d.want("under its new UUID", d.read(again[63]).Power.Draw, 400)
		d.want("another", d.read(byIndex[11]).Power.Draw, 410)
		d.tell(one...)
		d.list(r)
		d.want("under its old UUID again", d.read(byIndex[10]).Power.Draw, 400)
		if _, why := d.why(again[63]); why != metric.Lost {
			d.Errorf("under its new UUID it is read with %v", why)
		}
	})
}
