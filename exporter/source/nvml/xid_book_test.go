//go:build cgo

package nvml

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/kernellog"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// One XID of both is one; of three in the log the driver tells one.
func TestDriverAndLog(t *testing.T) {
	e := newMachine(t, false).starts()
	e.tells(0, 79)
	e.says("0a 79")
	e.says("0b 13", "0b 13", "0b 13")
	e.tells(1, 13)
	e.wants(0, "79×1 reboot×1")
	e.wants(1, "13×3 application×3")
	e.settled()
	time.Sleep(50 * time.Millisecond) // for what must not come
	e.wants(0, "79×1 reboot×1")
	e.wants(1, "13×3 application×3")
	if n := e.logged.count("XID of a new code"); n != 2 {
		t.Errorf("%d lines of new codes, want 2:\n%s", n, e.logged.b.String())
	}
}

// The log is read while the driver is closed, and tells of a device the driver has lost.
func TestLogWithoutDriver(t *testing.T) {
	e := newMachine(t, false).starts()
	e.wants(0, "")
	e.close()
	e.says("0a 119", "NVRM: GPU 0000:0b:00.0: GPU has fallen off the bus.")
	e.settled()
	e.open()
	e.lib.devices[0].(*fakeDevice).GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_GPU_IS_LOST }
	e.wants(0, "119×1 reset×1")
	e.wants(1, "79×1 reboot×1")
	e.says("0a 79")
	e.wants(0, "79×1 119×1 reset×1 reboot×1")
}

// Where the driver tells of no XID, the log alone does; where neither does, nothing is told.
func TestLogWithoutListener(t *testing.T) {
	m := newMachine(t, false)
	for _, d := range m.lib.devices {
		d.(*fakeDevice).GetSupportedEventTypesFunc = func() (uint64, nvml.Return) { return 0, nvml.SUCCESS }
	}
	e := m.starts()
	want(t, "actions of the first reading", e.read(0).Events[telemetry.XIDActionReboot], 0.)
	e.says("0a 79")
	e.wants(0, "79×1 reboot×1")
	e.end()

	m.config.KernelLog = filepath.Join(t.TempDir(), "none")
	e = m.starts()
	if x := e.read(0); x.Errors != nil || x.Events[0].Why() == nil {
		t.Errorf("nobody listens, and it tells %+v", x)
	}
	if n := m.logged.count("XIDs come from the driver alone"); n != 1 {
		t.Errorf("%d lines that the log can not be read, want 1:\n%s", n, m.logged.b.String())
	}
}

// XIDs of an address are the device's that comes there, and the log's word on who is there counts
// more than the address.
func TestStrangers(t *testing.T) {
	m := newMachine(t, true)
	m.says("0a 13", "0c 48", "0c 48")
	m.lib.devices[1] = at("GPU-00000000-0000-4000-8000-000000000001", "00000000:0B:00.0")
	e := m.starts()
	e.wants(0, "13×1 application×1")
	e.settled()
	e.close()
	m.lib.devices = append(m.lib.devices, at("GPU-2", "00000000:0C:00.0"))
	e.open()
	if got := brief(e.read(2)); got != "48×0" {
		t.Errorf("first: %s, want a code of 0", got)
	}
	e.wants(2, "48×2 drain×2")
	m.says("0c 48", "NVRM: GPU at PCI:0000:0d:00: GPU-00000000-0000-4000-8000-000000000001", "0d 31")
	e.wants(2, "48×3 drain×3")
	e.wants(1, "31×1 application×1")
	// Another board in its place.
	e.close()
	m.lib.devices[2] = at("GPU-3", "00000000:0C:00.0")
	e.open()
	m.says("0c 79")
	e.wants(2, "79×1 reboot×1")
}

// What was heard at an address, or is expected there, belongs to the device that is found there,
// and no more once the device has moved.
func TestPlaces(t *testing.T) {
	b := newBook()
	here := func(code uint64, at time.Time) kernellog.Event {
		return kernellog.Event{PCI: "0000:0a:00.0", Code: code, At: at}
	}
	hear := func(e kernellog.Event) { b.heard([]kernellog.Event{e}, kernellog.Cursor{}, kernellog.Faults{}) }
	hear(here(79, noon))
	b.whose("", "0000:0a:00.0").expect(48, noon)
	x := b.device("GPU-0")
	b.place("GPU-0", "0000:0a:00.0")
	if b.strangers != 0 {
		t.Errorf("%d strangers, want none", b.strangers)
	}
	x.add(79, noon)
	hear(here(48, noon))
	hear(here(48, noon.Add(time.Minute)))
	if got, want := brief(counted(x)), "48×1 79×1 reboot×1 drain×1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	b.place("GPU-0", "0000:0b:00.0")
	hear(here(62, noon))
	if got, want := brief(counted(x)), "48×1 79×1 reboot×1 drain×1"; got != want || b.strangers != 1 {
		t.Errorf("moved: %s and %d strangers, want %s and 1", got, b.strangers, want)
	}
	b.place("GPU-0", "0000:0b:00.0")
	b.place("GPU-0", "")
	if b.at["0000:0b:00.0"] != x || len(b.at) != 2 {
		t.Errorf("after placing it again, at %v", b.at)
	}
}

// More addresses than a machine has devices are not kept.
func TestStrangersAreBounded(t *testing.T) {
	m := newMachine(t, true)
	for i := range 3 * maxStrangers {
		m.says(fmt.Sprintf("%02x 79", i))
	}
	e := m.starts()
	e.settled()
	b := e.past.xids
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.strangers > maxStrangers || len(b.at) > maxStrangers+len(m.lib.devices) {
		t.Errorf("%d strangers at %d addresses", b.strangers, len(b.at))
	}
	if n := m.logged.count("more unknown devices"); n != 1 {
		t.Errorf("it is said %d times, want once", n)
	}
}

// What happened while the exporter was down is counted after the start; what an earlier run has
// counted is not, whether the log or the driver told it.
func TestRestart(t *testing.T) {
	m := newMachine(t, true)
	m.says("0a 13", "0a 13")
	e := m.starts()
	if got := brief(e.read(0)); got != "" && got != "13×0" {
		t.Errorf("first: %s, want 0", got)
	}
	e.wants(0, "13×2 application×2") // of this boot, before the first run
	e.says("0a 31")
	e.wants(0, "13×2 31×1 application×3")
	e.settled()
	m.tells(0, 79) // and the log is not read so far
	e.wants(0, "13×2 31×1 79×1 reboot×1 application×3")
	e.end()
	m.says("0a 79", "0a 48", "0b 63")

	e = m.starts()
	e.wants(0, "48×1 drain×1")
	e.wants(1, "63×1 none×1")
	e.settled()
	e.wants(0, "48×1 drain×1")
	e.end()

	// A third run has nothing to count.
	e = m.starts()
	e.settled()
	e.wants(0, "")
	m.says("0a 48")
	e.wants(0, "48×1 drain×1")
	e.end()

	// Another start of the machine begins its log anew.
	m.boots("second")
	m.sequence = 0
	if err := os.Remove(m.config.KernelLog); err != nil {
		t.Fatal(err)
	}
	m.says("0a 62")
	e = m.starts()
	e.wants(0, "62×1 reset×1")
}

// A run that is killed leaves what it has counted, too.
func TestKilled(t *testing.T) {
	m := newMachine(t, true)
	e := m.starts()
	m.says("0a 13")
	e.wants(0, "13×1 application×1")
	saved := func(told int) func() bool {
		return func() bool {
			var k kept
			_, err := m.config.State.Load(fact, &k)
			return err == nil && k.Cursor.Sequence == 1 && len(k.Told) == told
		}
	}
	eventually(t, "what the log told is saved", saved(0))
	m.tells(0, 79)
	eventually(t, "what the driver told is saved", saved(1))
	next := m.starts()
	next.says("0a 79")
	next.settled()
	time.Sleep(50 * time.Millisecond) // for what must not come
	next.wants(0, "")
}

// Where nothing is kept, a run counts what happens while it runs.
func TestRestartWithoutState(t *testing.T) {
	m := newMachine(t, false)
	m.says("0a 13")
	e := m.starts()
	e.says("0a 31")
	e.wants(0, "31×1 application×1")
	e.end()
	m.says("0a 48")
	e = m.starts()
	e.says("0a 62")
	e.wants(0, "62×1 reset×1")
}

// A state that can not be read or written is said once, and XIDs are counted all the same.
func TestStateFails(t *testing.T) {
	m := newMachine(t, true)
	dir := filepath.Join(filepath.Dir(m.config.KernelLog), "state")
	if err := os.WriteFile(filepath.Join(dir, fact+".json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.says("0a 13")
	e := m.starts()
	e.wants(0, "13×1 application×1")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		e.past.xids.save()
	}
	if a, b := m.logged.count("is not known"), m.logged.count("is not kept"); a != 1 || b != 1 {
		t.Errorf("said %d and %d times, want once each:\n%s", a, b, m.logged.b.String())
	}
}

// What the log missed is said.
func TestLogFaultsAreSaid(t *testing.T) {
	b := newBook()
	log := new(lines)
	b.log = slog.New(slog.NewTextHandler(log, nil))
	for i := range uint64(3) {
		b.heard(nil, kernellog.Cursor{}, kernellog.Faults{Overwritten: i, Unreadable: i})
	}
	if log.count("overwritten") != 1 || log.count("known form") != 1 {
		t.Error(log.b.String())
	}
}

// The log's addresses are written as those of the devices.
func TestAddressesAreAlike(t *testing.T) {
	m := newMachine(t, true)
	forms := []string{"0000:8A:00", "00000000:8a:00", "00010000:0B:00", "10000:0b:00"}
	for _, f := range forms {
		m.says("NVRM: Xid (PCI:" + f + "): 79, x")
	}
	e := m.starts()
	e.settled()
	b := e.past.xids
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range forms {
		if pci := telemetry.NormalizePCI(f + ".0"); b.at[pci] == nil {
			t.Errorf("%s is not at %s, but at one of %v", f, pci, slices.Sorted(maps.Keys(b.at)))
		}
	}
}
