//go:build cgo

package nvml

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gpumeter/gpumeter/exporter/pci"
)

// bus is what the kernel shows of NVIDIA's devices, apart from the library.
type bus struct {
	sysfs, proc string
}

// addresses returns the PCI addresses that the driver is bound to. It reports false where there is no
// sysfs to read, so that nothing is known of the bus. A function that cannot be read costs only itself.
func (b bus) addresses() (out []string, known bool) {
	if b.sysfs == "" {
		return nil, false
	}
	devices, err := pci.List(b.sysfs)
	if errors.Is(err, fs.ErrNotExist) && devices == nil {
		return nil, false
	}
	for _, d := range devices {
		if d.Vendor == "nvidia" && d.Driver == "nvidia" {
			out = append(out, d.Address)
		}
	}
	return out, true
}

// answers reports whether a device at an address responds on the bus and, where the driver lists its
// devices in /proc, is one of them.
func (b bus) answers(address string) bool {
	gpus := filepath.Join(b.proc, "driver", "nvidia", "gpus")
	if _, err := os.Stat(gpus); err == nil {
		if _, err := os.Stat(filepath.Join(gpus, address)); errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return pci.Responds(b.sysfs, address)
}

// evidence returns why another initialisation may find a device that this session lacks, "" when nothing
// suggests it: a device that has fallen off the bus and stays away is none.
func (r *reader) evidence() string {
	addresses, known := r.bus.addresses()
	bound, met := map[string]bool{}, map[string]bool{}
	for _, a := range addresses {
		bound[a] = true
	}
	for _, h := range r.handles {
		address := h.identity.PCI
		met[address] = true
		if h.healthy() {
			continue
		}
		if !known || address == "" || bound[address] && r.bus.answers(address) {
			return "device " + h.identity.UUID + " is lost and may be back"
		}
	}
	for _, a := range addresses {
		if !met[a] && r.bus.answers(a) {
			return "the driver does not list the device at " + a
		}
	}
	if !known && r.unlisted > 0 {
		return "the driver does not hand out a device"
	}
	return ""
}
