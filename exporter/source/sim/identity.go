package sim

import (
	"fmt"
	"strings"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// identify makes up who a board is, in the forms its vendor uses. Serial and part numbers say that
// they are simulated, so that nobody looks for them in an inventory.
func identify(b *board, index int, seed uint64) telemetry.Identity {
	id := telemetry.Identity{
		UUID: uuid(b.vendor, index, mix(seed, 'u'), mix(seed, 'v')), Index: index, Vendor: b.vendor, Model: b.model,
		PCI:          pciAddress(index),
		Architecture: b.architecture, ComputeCapability: b.capability,
		DriverVersion: b.driver, FirmwareVersion: b.firmware,
	}
	if b.vendor == nvidia {
		id.CUDAVersion = nvidiaCUDA
	}
	if !b.consumer {
		id.Serial = fmt.Sprintf("SIM%010d", mix(seed, 's')%1e10)
		id.PartNumber = "SIM-" + strings.ToUpper(strings.TrimSuffix(b.id, splitID)) // being split changes no board
	}
	return id
}

// uuid has the form the vendor's tool prints: nvidia-smi -L, the kernel's unique_id, hl-smi.
func uuid(vendor string, index int, x, y uint64) string {
	switch vendor {
	case amd:
		return fmt.Sprintf("%016x", x)
	case intel:
		return fmt.Sprintf("01P0-HL3251A0-18-S%05X-%02d-%02d-%02d", x&0xfffff, y%28+1, y>>8%12+1, index)
	}
	return "GPU-" + grouped(x, y)
}

// grouped writes 128 bits as UUIDs are written.
func grouped(x, y uint64) string {
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", x>>32, x>>16&0xffff, x&0xffff, y>>48, y&0xffffffffffff)
}

// pciAddress spreads the boards over two domains, four buses apart.
func pciAddress(index int) string {
	const perDomain = 32
	return fmt.Sprintf("%04x:%02x:00.0", index/perDomain, 0x10+4*(index%perDomain))
}
