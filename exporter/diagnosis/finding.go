// Package diagnosis finds out why accelerators of this machine are not read, from how the sources are
// and from what the kernel's and the driver's files say, and what to do about it.
package diagnosis

import (
	"cmp"
	"slices"
)

// Finding is one thing to know about this machine.
type Finding struct {
	ID       ID       `json:"id"`
	Severity Severity `json:"severity"`
	Device   string   `json:"device,omitempty"` // UUID or PCI address
	Message  string   `json:"message"`          // lower case, no full stop
	Advice   string   `json:"advice,omitempty"` // what to do
}

// ID names a kind of finding. Scripts match it: an ID keeps its meaning.
type ID string

// Findings about the machine, its sources and its devices. The README lists them.
const (
	NoAccelerator      ID = "no-accelerator"
	NotSupported       ID = "vendor-not-supported"
	DriverNotLoaded    ID = "driver-not-loaded"
	LibraryMissing     ID = "driver-library-missing"
	LibraryMismatch    ID = "driver-library-mismatch"
	NodesMissing       ID = "device-nodes-missing"
	AccessDenied       ID = "device-access-denied"
	DriverSilent       ID = "driver-not-responding"
	DriverDeviceless   ID = "driver-without-device"
	SourceFailed       ID = "source-failed"
	SourceUnbuilt      ID = "source-not-in-build"
	DevicesReleased    ID = "devices-released"
	DeviceLost         ID = "device-lost"
	DeviceMissing      ID = "device-missing"
	DeviceSilent       ID = "device-not-responding"
	DeviceFailed       ID = "device-failed"
	DeviceUnbound      ID = "device-without-driver"
	DeviceNotHere      ID = "device-not-in-container"
	DeviceOtherDriver  ID = "device-with-other-driver"
	DeviceInVM         ID = "device-in-vm"
	MetricsDenied      ID = "metrics-denied"
	Simulated          ID = "simulated"
	AttributionOff     ID = "attribution-off"
	ProcessUnknown     ID = "process-unknown"
	AllocationUnknown  ID = "allocation-unknown"
	AttributionFailing ID = "attribution-" // and the provider and its state behind it, such as attribution-podresources-missing
)

// Severity says how much a finding matters.
type Severity string

// The severities. An error means that a device that should be read is not.
const (
	Error   Severity = "error"
	Warning Severity = "warning" // owners or details are missing, or a state needs attention
	Info    Severity = "info"    // nothing needs to be changed
)

func (s Severity) rank() int { return slices.Index([]Severity{Error, Warning, Info}, s) }

// Sort orders findings by severity, the worst first, and keeps their order otherwise.
func Sort(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
}

// Worst returns the findings that are at least as severe.
func Worst(all []Finding, least Severity) []Finding {
	var out []Finding
	for _, f := range all {
		if f.Severity.rank() <= least.rank() {
			out = append(out, f)
		}
	}
	return out
}
