package diagnosis

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/pci"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Config says where this machine's files are. Empty fields take the usual places.
type Config struct {
	Sys     string // /sys of the host
	Proc    string // /proc of the host
	Dev     string // /dev of this process
	Maps    string // /proc/self/maps: the libraries this process has loaded
	Library string // the path of libnvidia-ml that the user gave

	access func(path string) error // nil: whether this process may read and write a file
}

// Machine is what the files of this machine say about its accelerators.
type Machine struct {
	Bus    []pci.Device // the accelerators on the PCI bus
	BusErr error        // why the bus was not read, or not all of it
	Fallen []string     // PCI addresses of those that have fallen off the bus: their configuration space is all ones
	NVIDIA NVIDIA
	Silent bool // the driver's files did not respond in time; Fallen and NVIDIA are empty
}

// patience is how long the driver's files may take. The kernel reads some of them under the driver's lock,
// which a driver in trouble does not release.
const patience = 2 * time.Second

// Looker reads the files. Concurrent calls share one look, so that a driver that hangs has one thread of
// this process and not one for each call.
type Looker struct {
	cfg Config

	mu  sync.Mutex
	now *look // the look that is under way; nil: none is
}

type look struct {
	done   chan struct{}
	fallen []string
	nvidia NVIDIA
}

// NewLooker returns a Looker that reads nothing before Look is called.
func NewLooker(cfg Config) *Looker {
	cfg.Sys = cmp.Or(cfg.Sys, "/sys")
	cfg.Proc = cmp.Or(cfg.Proc, "/proc")
	cfg.Dev = cmp.Or(cfg.Dev, "/dev")
	cfg.Maps = cmp.Or(cfg.Maps, "/proc/self/maps")
	if cfg.access == nil {
		cfg.access = access
	}
	return &Looker{cfg: cfg}
}

// Look reads the files now. It returns within two seconds.
func (l *Looker) Look(ctx context.Context) Machine {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var m Machine
	m.Bus, m.BusErr = pci.List(l.cfg.Sys)
	now := l.start(m.Bus)
	select {
	case <-now.done:
		m.Fallen, m.NVIDIA = now.fallen, now.nvidia
	case <-ctx.Done():
		m.Silent = true
	}
	return m
}

// start returns the look that is under way, or starts one.
func (l *Looker) start(bus []pci.Device) *look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil {
		now := &look{done: make(chan struct{})}
		l.now = now
		go func() {
			now.fallen, now.nvidia = l.cfg.fallen(bus), l.cfg.nvidia()
			l.mu.Lock()
			l.now = nil
			l.mu.Unlock()
			close(now.done)
		}()
	}
	return l.now
}

// fallen returns the addresses of devices whose configuration space reads as all ones, as the bus answers for
// a device that is gone. One that sleeps is left alone: to read it would wake it.
func (c *Config) fallen(bus []pci.Device) (out []string) {
	for _, d := range bus {
		dir := filepath.Join(c.Sys, "bus", "pci", "devices", d.Address)
		if status, _ := read(filepath.Join(dir, "power", "runtime_status"), 32); strings.TrimSpace(status) == "suspended" {
			continue
		}
		if ids, err := read(filepath.Join(dir, "config"), 4); err == nil && ids == "\xff\xff\xff\xff" {
			out = append(out, telemetry.NormalizePCI(d.Address))
		}
	}
	return out
}

// on returns the accelerators of a vendor on the bus that the host may use: those for virtual machines, and
// those of another driver than the one named, are left out.
func (m *Machine) on(vendor, driver string) (out []pci.Device) {
	for _, d := range m.Bus {
		if d.Vendor == vendor && (d.Driver == "" || d.Driver == driver) {
			out = append(out, d)
		}
	}
	return out
}
