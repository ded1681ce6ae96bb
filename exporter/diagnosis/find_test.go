package diagnosis

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/pci"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

var now = time.Unix(1_800_000_000, 0)

// nvmlFails is the source of NVIDIA's with this error.
func nvmlFails(err error) snapshot.SourceHealth {
	state := telemetry.SourceStateFailed
	if strings.Contains(err.Error(), source.ErrAbsent.Error()) {
		state = telemetry.SourceStateAbsent
	}
	return snapshot.SourceHealth{Name: "nvml", State: state, Cause: err, Err: err.Error()}
}

var serving = snapshot.SourceHealth{Name: "nvml", State: telemetry.SourceStateServing}

// gpu is a device in a state. Without a UUID and an address it is one of a number only.
func gpu(uuid, address string, state telemetry.State) (d snapshot.Device) {
	d.Identity = &telemetry.Identity{UUID: uuid, PCI: address, Vendor: "nvidia"}
	d.Read.Presence.State[state].Set(1)
	return d
}

func on(address, driver string) pci.Device {
	return pci.Device{Address: address, Vendor: "nvidia", Driver: driver}
}

const a, b = "0000:83:00.0", "0000:84:00.0"

// Each state of sources, devices and files has its findings, and no other.
func TestFind(t *testing.T) {
	driver := NVIDIA{Loaded: true, Kernel: "550.54.15", GPUs: []GPU{{PCI: a}, {PCI: b, Minor: 1}}}
	with := func(change func(*NVIDIA)) NVIDIA {
		n := driver
		change(&n)
		return n
	}
	missing := fmt.Errorf("access: %w", fs.ErrNotExist)
	two := []pci.Device{on(a, "nvidia"), on(b, "nvidia")}
	gone := []snapshot.Device{gpu("", a, telemetry.StateMissing), gpu("", b, telemetry.StateMissing)}
	for name, c := range map[string]struct {
		source  snapshot.SourceHealth
		devices []snapshot.Device
		machine Machine
		want    string // severity ID DEVICE, one a finding
		says    string // a part of the first message
		advises string // a part of the first advice
	}{
		"no accelerator":                    {nvmlFails(source.ErrNoLibrary), nil, Machine{}, "info no-accelerator", "no accelerator on the PCI bus", ""},
		"no accelerator, a library":         {nvmlFails(source.ErrAbsent), nil, Machine{}, "info no-accelerator", "", ""},
		"no accelerator, no bus":            {nvmlFails(source.ErrNoLibrary), nil, Machine{BusErr: fs.ErrNotExist}, "info no-accelerator", "cannot be read", ""},
		"no accelerator, a cgo-free build":  {snapshot.SourceHealth{Name: "nvml", State: telemetry.SourceStateUnbuilt, Cause: source.ErrUnbuilt}, nil, Machine{}, "info no-accelerator", "", ""},
		"a GPU and a cgo-free build":        {snapshot.SourceHealth{Name: "nvml", State: telemetry.SourceStateUnbuilt, Cause: source.ErrUnbuilt}, nil, Machine{Bus: two}, "error source-not-in-build", "", "cgo"},
		"one is expected by number":         {nvmlFails(source.ErrNoLibrary), []snapshot.Device{gpu("", "", telemetry.StateMissing)}, Machine{}, "error device-missing; info no-accelerator", "1 device is missing: --expected-devices asks for 1 in all", ""},
		"one is expected by UUID":           {nvmlFails(source.ErrNoLibrary), []snapshot.Device{gpu("GPU-a", "", telemetry.StateMissing)}, Machine{}, "error device-missing GPU-a; info no-accelerator", "GPU 0 GPU-a is expected and is not on the PCI bus", "inventory.json"},
		"a driver without a device":         {nvmlFails(source.ErrNoDevice), nil, Machine{NVIDIA: NVIDIA{Loaded: true}}, "warning driver-without-device; info no-accelerator", "", "power-cycle"},
		"no driver, no library":             {nvmlFails(source.ErrNoLibrary), gone, Machine{Bus: []pci.Device{on(a, ""), on(b, "")}}, "error driver-not-loaded", "2 NVIDIA devices are on the PCI bus", "modprobe"},
		"no driver, a library":              {nvmlFails(source.ErrAbsent), gone, Machine{Bus: two}, "error driver-not-loaded", "", "modprobe"},
		"a driver, no library":              {nvmlFails(source.ErrNoLibrary), gone, Machine{Bus: two, NVIDIA: driver}, "error driver-library-missing", "550.54.15 is loaded", "NVIDIA runtime"},
		"a driver, not the library named":   {nvmlFails(source.ErrNoLibrary), gone, Machine{Bus: two, NVIDIA: with(func(n *NVIDIA) { n.NoFile = "/x" })}, "error driver-library-missing", "--nvml.library names /x", ""},
		"no device nodes":                   {nvmlFails(source.ErrAbsent), gone, Machine{Bus: two, NVIDIA: with(func(n *NVIDIA) { n.Nodes = []Node{{"/dev/nvidiactl", "", missing}, {"/dev/nvidia1", b, missing}} })}, "error device-nodes-missing", "/dev/nvidiactl, /dev/nvidia1 do not exist", "nvidia-persistenced"},
		"the node of one GPU missing":       {serving, []snapshot.Device{gpu("GPU-a", a, telemetry.StateOK), gpu("", b, telemetry.StateMissing)}, Machine{Bus: two, NVIDIA: with(func(n *NVIDIA) { n.Nodes = []Node{{"/dev/nvidia1", b, missing}} })}, "error device-nodes-missing " + b, "/dev/nvidia1 does not exist", ""},
		"nodes that may not be opened":      {nvmlFails(source.ErrAbsent), gone, Machine{Bus: two, NVIDIA: with(func(n *NVIDIA) { n.Nodes = []Node{{"/dev/nvidiactl", "", &fs.PathError{Err: syscall.EPERM}}} })}, "error device-access-denied", "access to /dev/nvidiactl is denied: operation not permitted", "daemon-reload"},
		"the driver denies access":          {nvmlFails(fmt.Errorf("init: %w", source.ErrDenied)), gone, Machine{Bus: two, NVIDIA: driver}, "error device-access-denied", "init", "DeviceAllow"},
		"library and driver differ":         {nvmlFails(source.ErrStale), gone, Machine{Bus: two, NVIDIA: with(func(n *NVIDIA) { n.Library = "535.129.03" })}, "error driver-library-mismatch", "kernel driver 550.54.15, library 535.129.03", "reboot"},
		"they differ by their files":        {nvmlFails(fmt.Errorf("init: unknown")), gone, Machine{Bus: two, NVIDIA: with(func(n *NVIDIA) { n.Library = "535.129.03" })}, "error driver-library-mismatch", "", ""},
		"they differ in a container":        {nvmlFails(source.ErrStale), gone, Machine{Bus: two}, "error driver-library-mismatch", "have different versions", ""},
		"the driver fails":                  {nvmlFails(fmt.Errorf("init: corrupted")), gone, Machine{Bus: two, NVIDIA: driver}, "error source-failed", "init: corrupted", "nvidia-smi"},
		"the driver's files hang":           {nvmlFails(fmt.Errorf("init: x")), gone, Machine{Bus: two, Silent: true}, "error driver-not-responding", "/proc/driver/nvidia", ""},
		"the driver is being opened":        {snapshot.SourceHealth{Name: "nvml", State: telemetry.SourceStateFailed, Opening: now.Add(-30 * time.Second), Err: "being opened"}, gone, Machine{Bus: two, NVIDIA: driver}, "error driver-not-responding", "for 30 s", "--wait"},
		"the driver stopped to answer":      {nvmlFails(fmt.Errorf("list devices: %w for 2s", snapshot.ErrNoAnswer)), gone, Machine{Bus: two, NVIDIA: driver}, "error driver-not-responding", "no answer for 2s", ""},
		"another source fails":              {snapshot.SourceHealth{Name: "host", State: telemetry.SourceStateFailed, Err: "/proc/stat: x"}, nil, Machine{}, "error source-failed; info no-accelerator", "source host fails: /proc/stat: x", ""},
		"released":                          {snapshot.SourceHealth{Name: "nvml", State: telemetry.SourceStateReleased}, []snapshot.Device{gpu("GPU-a", a, telemetry.StateReleased)}, Machine{Bus: two[:1], NVIDIA: driver}, "warning devices-released", "", "SIGUSR2"},
		"all well":                          {serving, []snapshot.Device{gpu("GPU-a", a, telemetry.StateOK)}, Machine{Bus: two[:1], NVIDIA: driver}, "", "", ""},
		"one is lost":                       {serving, []snapshot.Device{gpu("GPU-a", a, telemetry.StateOK), gpu("GPU-b", b, telemetry.StateLost)}, Machine{Bus: two, NVIDIA: driver}, "error device-lost GPU-b", "", "Xid"},
		"one has fallen off the bus":        {serving, []snapshot.Device{gpu("GPU-a", a, telemetry.StateOK), gpu("", b, telemetry.StateMissing)}, Machine{Bus: two, Fallen: []string{b}, NVIDIA: driver}, "error device-lost " + b, "fallen off the PCI bus", "Xid"},
		"one hangs":                         {serving, []snapshot.Device{gpu("GPU-a", a, telemetry.StateLate)}, Machine{Bus: two[:1], NVIDIA: driver}, "error device-not-responding GPU-a", "", ""},
		"one fails":                         {serving, []snapshot.Device{gpu("GPU-a", a, telemetry.StateFailed)}, Machine{Bus: two[:1], NVIDIA: driver}, "error device-failed GPU-a", "", ""},
		"one is not listed":                 {serving, []snapshot.Device{gpu("GPU-a", a, telemetry.StateOK), gpu("", b, telemetry.StateMissing)}, Machine{Bus: two, NVIDIA: driver}, "error device-missing " + b, "the driver does not list it", "NVRM"},
		"one is excluded":                   {serving, []snapshot.Device{gpu("GPU-a", a, telemetry.StateOK), gpu("", b, telemetry.StateMissing)}, Machine{Bus: two, NVIDIA: with(func(n *NVIDIA) { n.GPUs = []GPU{{PCI: b, Excluded: true}} })}, "", "", ""},
		"one is not in this container":      {serving, []snapshot.Device{gpu("GPU-a", a, telemetry.StateOK), gpu("", b, telemetry.StateMissing)}, Machine{Bus: two, NVIDIA: with(func(n *NVIDIA) { n.GPUs = n.GPUs[:1] })}, "warning device-not-in-container " + b, "", "--devices"},
		"one has no driver":                 {serving, []snapshot.Device{gpu("GPU-a", a, telemetry.StateOK), gpu("", b, telemetry.StateMissing)}, Machine{Bus: []pci.Device{on(a, "nvidia"), on(b, "")}, NVIDIA: driver}, "error device-without-driver " + b, "", "echo " + b},
		"one has nouveau":                   {serving, []snapshot.Device{gpu("GPU-a", a, telemetry.StateOK)}, Machine{Bus: []pci.Device{on(a, "nvidia"), on(b, "nouveau")}, NVIDIA: driver}, "error device-with-other-driver " + b, "", "blacklist nouveau"},
		"one is in a virtual machine":       {serving, []snapshot.Device{gpu("GPU-a", a, telemetry.StateOK)}, Machine{Bus: []pci.Device{on(a, "nvidia"), on(b, "vfio-pci")}, NVIDIA: driver}, "info device-in-vm " + b, "", ""},
		"all are in virtual machines":       {nvmlFails(source.ErrNoLibrary), nil, Machine{Bus: []pci.Device{on(a, "vfio-pci"), on(b, "pci-stub")}}, "info device-in-vm " + a + "; info device-in-vm " + b, "", ""},
		"of another vendor":                 {nvmlFails(source.ErrNoLibrary), nil, Machine{Bus: []pci.Device{{Address: a, Vendor: "amd", Driver: "amdgpu"}}}, "info vendor-not-supported", "1 amd device", ""},
		"the driver went under an exporter": {nvmlFails(source.ErrAbsent), []snapshot.Device{gpu("GPU-a", a, telemetry.StateLost)}, Machine{Bus: two[:1]}, "error driver-not-loaded", "", ""},
	} {
		s := &snapshot.Snapshot{Taken: now, Devices: c.devices, Health: snapshot.Health{Sources: []snapshot.SourceHealth{c.source}}}
		var got []string
		found := Find(s, &c.machine)
		for _, f := range found {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Severity, f.ID, f.Device)))
			if f.Severity != Info && (f.Advice == "" || !strings.HasSuffix(f.Advice, ".")) {
				t.Errorf("%s: %s has the advice %q", name, f.ID, f.Advice)
			}
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, strings.Join(got, "; "), c.want)
			continue
		}
		if len(found) > 0 && (!strings.Contains(found[0].Message, c.says) || !strings.Contains(found[0].Advice, c.advises)) {
			t.Errorf("%s: %+v does not say %q and advise %q", name, found[0], c.says, c.advises)
		}
	}
}

// A simulated node has nothing to do with this machine.
func TestFind_Simulated(t *testing.T) {
	s := &snapshot.Snapshot{Devices: []snapshot.Device{gpu("GPU-a", a, telemetry.StateOK)}, Health: snapshot.Health{Sources: []snapshot.SourceHealth{{Name: "sim"}}}}
	if all := Find(s, nil); len(all) != 1 || all[0].ID != Simulated || all[0].Severity != Info {
		t.Errorf("%+v", all)
	}
}

func TestHeadline(t *testing.T) {
	lost := Finding{ID: DeviceLost, Severity: Error, Message: "GPU 1 is lost"}
	for name, c := range map[string]struct {
		all  []Finding
		want string
	}{
		"nothing":          {nil, ""},
		"only information": {[]Finding{{ID: DeviceInVM, Severity: Info, Message: "x"}}, ""},
		"no accelerator":   {[]Finding{{ID: NoAccelerator, Severity: Info, Message: "no accelerator"}}, "no accelerator"},
		"a warning":        {[]Finding{{ID: DevicesReleased, Severity: Warning, Message: "x"}}, ""},
		"one":              {[]Finding{lost, {ID: NoAccelerator, Severity: Info}}, `GPU 1 is lost [device-lost]; "gpumeter doctor" says what to do`},
		"three":            {[]Finding{lost, lost, lost}, `GPU 1 is lost [device-lost] and 2 more; "gpumeter doctor" says what to do`},
		"two lines":        {[]Finding{{ID: SourceFailed, Severity: Error, Message: "a\nb"}}, `a b [source-failed]; "gpumeter doctor" says what to do`},
	} {
		if got := Headline(c.all); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestSort(t *testing.T) {
	all := []Finding{{ID: "a", Severity: Info}, {ID: "b", Severity: Error}, {ID: "c", Severity: Warning}, {ID: "d", Severity: Error}}
	Sort(all)
	var got strings.Builder
	for _, f := range all {
		got.WriteString(string(f.ID))
	}
	if got.String() != "bdca" || len(Worst(all, Warning)) != 3 || len(Worst(all, Error)) != 2 {
		t.Errorf("%s, %d, %d", got.String(), len(Worst(all, Warning)), len(Worst(all, Error)))
	}
}
