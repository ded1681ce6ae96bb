// Package inventory says which devices should be there: those on the PCI bus, those seen before, and
// those a user asks for.
package inventory

import (
	"cmp"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/pci"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/state"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Config says where to look.
type Config struct {
	Asked []string    // by the user: one number, UUIDs, PCI addresses
	Sysfs string      // where the kernel's /sys is; empty: the bus is not looked at
	Store state.Store // where devices that were seen are kept
	// Driver names the kernel driver that devices of a vendor are read through; empty: they are not read.
	// One that is bound to another, such as vfio-pci, is nobody's.
	Driver func(vendor string) string
	Vendor string // of what is asked for by number or UUID alone
	Now    func() time.Time
	Logger *slog.Logger
}

// Inventory knows which devices should be there. Its Expected is for a snapshot.Config, and its
// Stage one of its stages.
type Inventory struct {
	cfg   Config
	asked []telemetry.Identity
	count int
	said  string // of the bus, when it was last looked at; Expected's goroutine alone touches it

	mu      sync.Mutex
	seen    map[string]entry // by UUID
	changed chan struct{}    // has something when it is to be saved
}

// Open reads what was kept. A file that can not be read is logged and begun anew.
func Open(cfg Config) (*Inventory, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	x := &Inventory{cfg: cfg, seen: map[string]entry{}, changed: make(chan struct{}, 1)}
	var err error
	if x.asked, x.count, err = parse(cfg.Asked, cfg.Vendor); err != nil {
		return nil, err
	}
	var kept record
	if _, err := cfg.Store.Load(name, &kept); err != nil {
		cfg.Logger.Error("the inventory can not be read; it is begun anew", "err", err)
	}
	for _, e := range kept.Devices {
		x.seen[e.UUID] = e
	}
	return x, nil
}

// Expected is which devices should be there now.
func (x *Inventory) Expected() snapshot.Expected {
	bus := x.bus()
	out := snapshot.Expected{Count: x.count, Vendor: x.cfg.Vendor}
	for _, e := range x.entries() {
		driver := x.cfg.Driver(e.Vendor)
		d, there := bus[e.PCI]
		others := there && d.Driver != "" && d.Driver != driver
		if driver != "" && !others || x.asks(e.identity()) {
			out.Devices = append(out.Devices, e.identity())
		}
	}
	for _, address := range slices.Sorted(maps.Keys(bus)) {
		d := bus[address]
		driver := x.cfg.Driver(d.Vendor)
		id := telemetry.Identity{PCI: address, Vendor: d.Vendor, Index: -1}
		if driver != "" && (d.Driver == "" || d.Driver == driver) && !has(out.Devices, id) {
			out.Devices = append(out.Devices, id)
		}
	}
	for _, id := range x.asked {
		if d, there := bus[id.PCI]; there {
			id.Vendor = d.Vendor
		}
		if !has(out.Devices, id) {
			out.Devices = append(out.Devices, id)
		}
	}
	return out
}

// bus is what is on it, by address.
func (x *Inventory) bus() map[string]pci.Device {
	if x.cfg.Sysfs == "" {
		return nil
	}
	devices, err := pci.List(x.cfg.Sysfs)
	x.say(err)
	out := map[string]pci.Device{}
	for _, d := range devices {
		out[telemetry.NormalizePCI(d.Address)] = d
	}
	return out
}

// say logs what is wrong with the bus when it is new.
func (x *Inventory) say(err error) {
	now := ""
	if err != nil {
		now = err.Error()
	}
	if now == x.said {
		return
	}
	x.said = now
	switch {
	case err == nil:
		x.cfg.Logger.Info("the PCI bus can be read again")
	case errors.Is(err, fs.ErrNotExist):
		x.cfg.Logger.Info("no PCI bus is seen; what is on it is not expected", "err", err)
	default:
		x.cfg.Logger.Warn("the PCI bus can not be read whole", "err", err)
	}
}

// entries are the devices seen, in an order that does not change.
func (x *Inventory) entries() []entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.SortedFunc(maps.Values(x.seen), func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Vendor, b.Vendor), cmp.Compare(a.Index, b.Index), cmp.Compare(a.UUID, b.UUID))
	})
}

// asks says whether the user asks for that device.
func (x *Inventory) asks(id telemetry.Identity) bool {
	return slices.ContainsFunc(x.asked, func(a telemetry.Identity) bool { return same(a, id) })
}

func has(devices []telemetry.Identity, id telemetry.Identity) bool {
	return slices.ContainsFunc(devices, func(d telemetry.Identity) bool { return same(d, id) })
}

// same goes by UUID, and by PCI address where one of them has no UUID. A serial number says
// nothing: the devices of a board, and of a module, share one.
func same(a, b telemetry.Identity) bool {
	if a.UUID != "" && b.UUID != "" {
		return a.UUID == b.UUID
	}
	return a.PCI != "" && a.PCI == b.PCI
}
