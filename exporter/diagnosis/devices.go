package diagnosis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpumeter/gpumeter/exporter/pci"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// What to do about one device.
const (
	resetDevice = "Look for Xid and NVRM lines in the kernel log (dmesg). Drain the node, then reset the GPU (nvidia-smi --gpu-reset -i GPU), " +
		"reboot, or power-cycle the machine."
	seatDevice = "Look for NVRM lines in the kernel log (dmesg), and see that the GPU is not excluded (NVreg_ExcludedGpus). " +
		"Reboot or power-cycle the machine; if the GPU stays away, check its seat and its power."
	forgetDevice = "If it was removed for good, delete it from inventory.json in --state.directory, or change --expected-devices. " + seatDevice
	grantDevice  = "Give the container all GPUs (NVIDIA_VISIBLE_DEVICES=all), or name those it has with --devices."
	bindDevice   = "Look for NVRM lines in the kernel log (dmesg): the driver refuses a GPU it does not support. " +
		"Bind it: echo ADDRESS >/sys/bus/pci/drivers/nvidia/bind."
)

// devices examines those of the snapshot.
func (x *examination) devices() {
	nameless := 0
	for i := range x.snapshot.Devices {
		d := &x.snapshot.Devices[i]
		f := Finding{Severity: Error, Device: cmp.Or(d.Identity.UUID, d.Identity.PCI), Message: describe(d.Identity)}
		switch {
		case slices.Contains(x.machine.Fallen, d.Identity.PCI) && d.State() != telemetry.StateOK.String():
			f.ID, f.Message, f.Advice = DeviceLost, f.Message+" is lost: it has fallen off the PCI bus", resetDevice
		case x.explained[d.Identity.PCI] && d.Identity.PCI != "":
			continue
		case d.State() == telemetry.StateLate.String():
			f.ID, f.Message, f.Advice = DeviceSilent, f.Message+" does not respond; its driver may hang", resetDevice
		case d.State() == telemetry.StateLost.String():
			f.ID, f.Message, f.Advice = DeviceLost, f.Message+" is lost: it does not respond, or its driver is gone", resetDevice
		case d.State() == telemetry.StateFailed.String():
			f.ID, f.Message, f.Advice = DeviceFailed, f.Message+" fails: its driver returns errors", resetDevice
		case d.State() != telemetry.StateMissing.String():
			continue
		case f.Device == "":
			nameless++
			continue
		default:
			f = x.missing(d, f)
		}
		if f.ID != "" {
			x.add(f)
		}
	}
	if nameless > 0 {
		x.add(Finding{
			ID: DeviceMissing, Severity: Error, Advice: "See which device is gone: compare with the machine's data sheet and lspci. Otherwise change --expected-devices. " + seatDevice,
			Message: fmt.Sprintf("%s missing: --expected-devices asks for %d in all", plural(nameless, "device is", "devices are"), len(x.snapshot.Devices)),
		})
	}
}

// describe names a device for people.
func describe(id *telemetry.Identity) string {
	words := []string{"GPU"}
	if id.Index >= 0 && id.UUID != "" {
		words = append(words, fmt.Sprint(id.Index))
	}
	for _, w := range []string{id.UUID, id.PCI} {
		if w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

// missing is the finding about a device that should be there.
func (x *examination) missing(d *snapshot.Device, f Finding) Finding {
	n := &x.machine.NVIDIA
	nodes := slices.DeleteFunc(n.nodes(true), func(n Node) bool { return n.PCI != d.Identity.PCI || n.PCI == "" })
	f.ID, f.Advice = DeviceMissing, seatDevice
	switch on := x.at(d.Identity.PCI); {
	case on == nil:
		f.Message, f.Advice = f.Message+" is expected and is not on the PCI bus", forgetDevice
	case on.Driver == "":
		f.ID, f.Message = DeviceUnbound, f.Message+" is on the PCI bus, and no kernel driver is bound to it"
		f.Advice = strings.ReplaceAll(bindDevice, "ADDRESS", on.Address)
	case len(nodes) > 0:
		device := f.Device
		f = missingNodes(nodes)
		f.Device = device
	case slices.ContainsFunc(n.GPUs, func(g GPU) bool { return g.PCI == d.Identity.PCI && g.Excluded }):
		f.ID = "" // the administrator does not want it to be used
	case strings.Contains(on.Driver, "vfio"):
		f.ID = "" // said of the bus
	case len(n.GPUs) > 0 && !slices.ContainsFunc(n.GPUs, func(g GPU) bool { return g.PCI == d.Identity.PCI }):
		// NVIDIA's container runtime shows only the granted GPUs in /proc/driver/nvidia/gpus.
		f.ID, f.Severity, f.Advice = DeviceNotHere, Warning, grantDevice
		f.Message += " is on the PCI bus, and is not given to this container"
	default:
		f.Message += " is on the PCI bus, and the driver does not list it"
	}
	return f
}

// at returns the device at an address of the bus.
func (x *examination) at(address string) *pci.Device {
	for i := range x.machine.Bus {
		if d := &x.machine.Bus[i]; address != "" && telemetry.NormalizePCI(d.Address) == address {
			return d
		}
	}
	return nil
}

// bus examines the devices that no source is meant to read.
func (x *examination) bus() {
	read := map[string]bool{"nvidia": true}
	for i := range x.snapshot.Devices {
		if d := &x.snapshot.Devices[i]; d.State() != telemetry.StateMissing.String() {
			read[d.Identity.Vendor] = true
		}
	}
	others := map[string]int{}
	for _, d := range x.machine.Bus {
		f := Finding{Device: telemetry.NormalizePCI(d.Address), Severity: Info}
		switch {
		case strings.Contains(d.Driver, "vfio"), d.Driver == "pci-stub":
			f.ID, f.Message = DeviceInVM, fmt.Sprintf("PCI device %s (%s) is given to virtual machines by the driver %s; it is not read here", d.Address, d.Vendor, d.Driver)
			x.add(f)
		case d.Vendor == "nvidia" && d.Driver != "" && d.Driver != "nvidia":
			f.ID, f.Severity, f.Message = DeviceOtherDriver, Error, fmt.Sprintf("PCI device %s (nvidia) is bound to the driver %s, which gpumeter does not read", d.Address, d.Driver)
			f.Advice = "Install NVIDIA's driver, blacklist " + d.Driver + ", and reboot."
			x.add(f)
		case !read[d.Vendor]:
			others[d.Vendor]++
		}
	}
	for _, vendor := range slices.Sorted(maps.Keys(others)) {
		x.add(Finding{
			ID: NotSupported, Severity: Info,
			Message: plural(others[vendor], vendor+" device is", vendor+" devices are") + " on the PCI bus; this build does not read devices of that vendor",
		})
	}
	x.empty()
}

// empty is for a machine on which nothing is found.
func (x *examination) empty() {
	there := slices.ContainsFunc(x.snapshot.Devices, func(d snapshot.Device) bool { return d.State() != telemetry.StateMissing.String() })
	if there || len(x.machine.Bus) > 0 || len(x.machine.NVIDIA.GPUs) > 0 {
		return
	}
	f := Finding{ID: NoAccelerator, Severity: Info, Message: "no accelerator on the PCI bus"}
	if x.machine.BusErr != nil {
		f.Message = "no accelerator found, and the PCI bus cannot be read: " + x.machine.BusErr.Error()
	}
	x.add(f)
}
