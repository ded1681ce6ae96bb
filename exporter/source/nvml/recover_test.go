//go:build cgo

package nvml

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// relist is how often the devices are listed in these tests.
const relist = 30 * time.Second

// losing is a device that is lost as long as *lost.
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

// why reads a device, and returns why it does not answer.
func (n *node) why(h *handle) *metric.Reason { return h.Read(n.Context(), new(telemetry.Device)) }

// fakeProber is the other process, which initialises the same fake library.
type fakeProber struct {
	lib    *fakeLibrary
	takes  []time.Duration // Init of each probe in turn; the last one for all further ones
	probes int
	held   int             // probes that were not released
	blind  map[string]bool // devices it does not find
}

func (p *fakeProber) start(context.Context) (*probe, error) {
	p.probes++
	if p.lib.init != nvml.SUCCESS {
		return nil, errors.New("NVML fails")
	}
	p.held++
	found := &probe{uuids: map[string]bool{}, release: func() { p.held-- }}
	if n := len(p.takes); n > 0 {
		found.init = p.takes[min(p.probes, n)-1]
	}
	for i := range p.lib.devices {
		if uuid, ok := responds(p.lib, i); ok && !p.blind[uuid] {
			found.uuids[uuid] = true
		}
	}
	return found, nil
}

// recovering opens a library whose lost devices another process looks for.
func recovering(t *testing.T, l *fakeLibrary, with ...func(*Config)) (*node, *fakeProber) {
	t.Helper()
	p := &fakeProber{lib: l}
	n := started(t, l, append([]func(*Config){func(c *Config) { c.startProbe = p.start }}, with...)...)
	t.Cleanup(func() {
		if p.held != 0 {
			t.Errorf("%d probes are not released", p.held)
		}
	})
	return n, p
}

// lists lists the devices, and again when a probe has found one.
func (n *node) lists() []*handle {
	n.Helper()
	all := n.list()
	if !n.again.running {
		return all
	}
	found := <-n.again.result
	n.again.result <- found
	if found == nil {
		return all
	}
	<-n.Changed()
	return n.list()
}

// onBus is a sysfs with NVIDIA's driver bound to devices at these addresses. A device that has fallen off
// the bus returns all bits set.
func onBus(t *testing.T, sysfs string, addresses ...string) func(address string, answers bool) {
	t.Helper()
	write := func(address, name, text string) {
		if err := os.WriteFile(filepath.Join(sysfs, "bus", "pci", "devices", address, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range addresses {
		dir := filepath.Join(sysfs, "bus", "pci", "devices", a)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Symlink("../../../bus/pci/drivers/nvidia", filepath.Join(dir, "driver"))); err != nil {
			t.Fatal(err)
		}
		write(a, "class", "0x030200\n")
		write(a, "vendor", "0x10de\n")
		write(a, "device", "0x2330\n")
		write(a, "config", "\xde\x10\x30\x23")
	}
	return func(address string, answers bool) {
		if answers {
			write(address, "config", "\xde\x10\x30\x23")
		} else {
			write(address, "config", "\xff\xff\xff\xff")
		}
	}
}

// A device that stays away costs the others nothing: probes become rare, and the session is never renewed.
func TestRecovery_DeviceThatStaysAwayIsLookedForEverLess(t *testing.T) {
	lost := true
	l := newFakeLibrary(losing("GPU-0", &lost), answering("GPU-1"))
	n, p := recovering(t, l)
	h, spent := n.list(), time.Duration(0)
	var at []time.Duration
	for spent < 4*time.Hour {
		if why := n.why(h[0]); why != metric.Lost {
			t.Fatalf("read with %v", why)
		}
		n.read(h[1])
		n.turn(relist)
		spent += relist
		before := p.probes
		if again := n.lists(); !slices.Equal(h, again) {
			t.Fatal("the devices are not the same")
		}
		if p.probes != before {
			at = append(at, spent)
		}
	}
	// The device may answer again by itself, so the second listing is the first to look.
	want := []time.Duration{time.Minute, 90 * time.Second, 150 * time.Second, 270 * time.Second, 510 * time.Second, 990 * time.Second}
	for next := want[len(want)-1] + lastProbe; next <= 4*time.Hour; next += lastProbe {
		want = append(want, next)
	}
	if !slices.Equal(at, want) {
		t.Errorf("looked for after\n%v, want\n%v", at, want)
	}
	if l.inits != 1 {
		t.Errorf("NVML was initialised %d times for a device that stays away", l.inits)
	}

	// It is back, and lost again: the pauses begin again.
	lost = false
	n.turn(time.Hour)
	n.lists()
	n.read(h[0])
	if l.inits != 2 {
		t.Errorf("NVML was initialised %d times once the device was back, want twice", l.inits)
	}
	n.turn(relist)
	n.lists()
	lost = true
	n.why(h[0])
	before := p.probes
	for range 2 {
		n.turn(relist)
		n.lists()
	}
	if p.probes != before+1 {
		t.Errorf("lost once more, it was looked for %d times in a minute, want once", p.probes-before)
	}
}

// Without evidence on the bus not even another process is started.
func TestRecovery_NoProbeWithoutEvidence(t *testing.T) {
	lost := true
	broken := at("GPU-0", "00000000:1A:00.0")
	broken.GetPowerUsageFunc = losing("", &lost).GetPowerUsageFunc
	l := newFakeLibrary(broken, at("GPU-1", "00000000:1B:00.0"))
	sysfs, proc := t.TempDir(), t.TempDir()
	set := onBus(t, sysfs, "0000:1a:00.0", "0000:1b:00.0")
	set("0000:1a:00.0", false)
	n, p := recovering(t, l, func(c *Config) { c.Sys, c.Proc = sysfs, proc })
	h := n.list()
	n.why(h[0])
	looked := func() int {
		before := p.probes
		for range 4 {
			n.turn(time.Hour)
			n.lists()
		}
		return p.probes - before
	}
	if n := looked(); n != 0 {
		t.Errorf("%d probes for a device that is off the bus", n)
	}
	set("0000:1a:00.0", true)
	gpus := filepath.Join(proc, "driver", "nvidia", "gpus")
	if err := os.MkdirAll(filepath.Join(gpus, "0000:1b:00.0"), 0o755); err != nil {
		t.Fatal(err)
	}
	if n := looked(); n != 0 {
		t.Errorf("%d probes for a device that the driver does not list in /proc", n)
	}
	if err := os.Mkdir(filepath.Join(gpus, "0000:1a:00.0"), 0o755); err != nil {
		t.Fatal(err)
	}
	if looked() == 0 {
		t.Error("a device that is back on the bus is not looked for")
	}
}

// The others are read as long as a renewal would cost them anything.
func TestRecovery_NotAtTheCostOfHealthyDevices(t *testing.T) {
	const slow, fast = 20 * time.Second, 10 * time.Millisecond
	for name, c := range map[string]struct {
		takes   []time.Duration
		fails   bool
		blind   string
		alone   bool // no other device answers
		renewed bool
	}{
		"a new process finds it": {takes: []time.Duration{fast}, renewed: true},
		"Init fails":             {fails: true},
		"Init takes 20 s":        {takes: []time.Duration{slow}},
		"Init takes 20 s while no process holds the devices":     {takes: []time.Duration{slow, fast}, renewed: true},
		"Init takes 20 s, and no other device answers":           {takes: []time.Duration{slow}, alone: true, renewed: true},
		"a new process does not find it":                         {takes: []time.Duration{fast}, blind: "GPU-0"},
		"a new process does not find another":                    {takes: []time.Duration{fast}, blind: "GPU-1"},
		"a new process does not find it, and no other answers":   {takes: []time.Duration{fast}, blind: "GPU-0", alone: true},
		"Init fails, and no other device answers (tried anyway)": {fails: true, alone: true},
	} {
		t.Run(name, func(t *testing.T) {
			lost := true
			devices := []device{losing("GPU-0", &lost)}
			if !c.alone {
				devices = append(devices, answering("GPU-1"))
			}
			l := newFakeLibrary(devices...)
			n, p := recovering(t, l)
			p.takes, p.blind = c.takes, map[string]bool{c.blind: true}
			h := n.list()
			n.why(h[0])
			lost = false // but the session does not know
			h[0].lost.Store(true)
			if c.fails {
				l.init = nvml.ERROR_UNKNOWN
			}
			for range 3 {
				n.turn(relist)
				n.lists()
				for _, other := range h[1:] {
					n.read(other)
				}
				if !c.renewed {
					h[0].lost.Store(true)
				}
			}
			if renewed := l.inits > 1; renewed != c.renewed {
				t.Errorf("renewed: %v, want %v (%d probes)", renewed, c.renewed, p.probes)
			}
			if p.probes == 0 {
				t.Error("it was not looked for")
			}
		})
	}
}

// Without another process, a session is renewed only when no device is read.
func TestRecovery_WithoutProbe(t *testing.T) {
	for _, healthy := range []bool{true, false} {
		lost := true
		devices := []device{losing("GPU-0", &lost)}
		if healthy {
			devices = append(devices, answering("GPU-1"))
		}
		l := newFakeLibrary(devices...)
		n := started(t, l)
		h := n.list()
		n.why(h[0])
		for range 4 {
			n.turn(relist)
			n.list()
		}
		if renewed := l.inits > 1; renewed == healthy {
			t.Errorf("with a healthy device: %v; renewed: %v", healthy, renewed)
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

// A device that came onto the bus is found by initialising again, and the others stay who they are.
func TestRecovery_DeviceThatWasPutIn(t *testing.T) {
	l := &enumerating{fakeLibrary: newFakeLibrary(at("GPU-0", "00000000:1A:00.0"))}
	p := &fakeProber{lib: l.fakeLibrary}
	cfg := config()
	cfg.Sys, cfg.startProbe = t.TempDir(), p.start
	onBus(t, cfg.Sys, "0000:1a:00.0")
	r, err := open(l, cfg, newArchive(), everything())
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, r)
	n := &node{TB: t, reader: r}
	first := n.list()[0]
	n.lists()
	n.lists()
	if l.inits != 1 || p.probes != 0 {
		t.Errorf("initialised %d times after %d probes with all of the bus listed", l.inits, p.probes)
	}
	l.devices = append(l.devices, at("GPU-1", "00000000:1B:00.0"))
	onBus(t, cfg.Sys, "0000:1b:00.0")
	for range 3 {
		n.lists()
	}
	if all := n.lists(); len(all) != 2 || all[0] != first || l.inits != 2 {
		t.Errorf("%d devices, initialised %d times", len(all), l.inits)
	}
}

// The process that finds a missing device holds the devices until the session is renewed, and no longer than
// the reader is open.
func TestRecovery_ProcessHoldsTheDevicesUntilReleased(t *testing.T) {
	for _, closes := range []bool{false, true} {
		r, err := open(newFakeLibrary(answering("GPU-0")), config(), newArchive(), everything())
		if err != nil {
			t.Fatal(err)
		}
		p := shell(`echo '{"uuids": ["GPU-0"]}'; cat >/dev/null`)
		r.again.probe = p.start
		found := r.search(map[string]bool{})
		if found == nil {
			t.Fatal("nothing is found")
		}
		time.Sleep(50 * time.Millisecond)
		if n := p.alive.Load(); n != 1 {
			t.Errorf("%d processes hold the devices, want 1", n)
		}
		if !closes {
			found.release()
			closed(t, r)
		} else {
			closed(t, r)
			eventually(t, "the process ends with the reader", func() bool { return p.alive.Load() == 0 })
		}
		if n := p.alive.Load(); n != 0 {
			t.Errorf("%d processes are left", n)
		}
	}
}
