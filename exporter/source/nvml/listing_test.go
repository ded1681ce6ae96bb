//go:build cgo

package nvml

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// drawing is a device that is known by what it draws.
func drawing(uuid string, watts uint32) *fakeDevice {
	d := answering(uuid)
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 1000 * watts, nvml.SUCCESS }
	return d
}

// drawn lists the devices and reads them: UUID and watts, or why there are none.
func (n *node) drawn() string {
	n.Helper()
	var all []string
	for _, h := range n.list() {
		var out telemetry.Device
		if why := h.Read(n.Context(), &out); why != nil {
			all = append(all, h.identity.UUID+" "+why.Text)
			continue
		}
		all = append(all, fmt.Sprintf("%s %v", h.identity.UUID, n.number("draw", out.Power.Draw)))
	}
	return strings.Join(all, ", ")
}

func (n *node) draws(what, want string) {
	n.Helper()
	if got := n.drawn(); got != want {
		n.Errorf("%s: %s, want %s", what, got, want)
	}
}

// calling renames a device.
func calling(d *fakeDevice, uuid string) {
	d.GetUUIDFunc = func() (string, nvml.Return) { return uuid, nvml.SUCCESS }
}

// Of two devices with one UUID the first is it, however often they are listed.
func TestOneUUIDTwice(t *testing.T) {
	var said strings.Builder
	a, b := drawing("GPU-0", 100), drawing("GPU-0", 200)
	past := newArchive()
	past.log = slog.New(slog.NewTextHandler(&said, nil))
	r, err := open(newFakeLibrary(a, b), config(), past, everything())
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, r)
	n := &node{TB: t, reader: r}
	for range 3 {
		n.draws("two of one UUID", "GPU-0 100")
	}
	if asked := b.asked["GetVirtualizationModeFunc"]; asked != 0 {
		t.Errorf("the other was handed out %d times", asked)
	}
	if times := strings.Count(said.String(), "has the uuid of another: GPU-0"); times != 1 {
		t.Errorf("said %d times:\n%s", times, said.String())
	}
}

// A device that bears another UUID is another: the old one is lost, and back when its UUID is.
func TestUUIDChanges(t *testing.T) {
	a, b := drawing("GPU-0", 100), drawing("GPU-1", 200)
	n := started(t, newFakeLibrary(a, b))
	n.draws("at first", "GPU-0 100, GPU-1 200")
	for _, h := range n.list() {
		h.Sample(t.Context())
	}
	calling(a, "GPU-new")
	n.draws("the first has another", "GPU-0 lost, GPU-1 200, GPU-new 100")
	calling(a, "GPU-0")
	n.draws("and its own again", "GPU-0 100, GPU-1 200, GPU-new lost")
	calling(a, "GPU-1")
	calling(b, "GPU-0")
	n.draws("each has the other's", "GPU-0 200, GPU-1 100, GPU-new lost")
}

// The fault of another device must not leave the old UUID on one that has a new one.
func TestUUIDChangesBesideAFault(t *testing.T) {
	a, b := drawing("GPU-0", 100), drawing("GPU-1", 200)
	l := newFakeLibrary(a, b)
	n := started(t, l)
	n.draws("at first", "GPU-0 100, GPU-1 200")
	calling(a, "GPU-new")
	l.handles[1] = nvml.ERROR_UNKNOWN
	n.draws("while the other can not be listed", "GPU-0 lost, GPU-1 200, GPU-new 100")
}

// A device handed out anew is a hole in its profile, and what was held of it is given back.
func TestUUIDGoesAndComes(t *testing.T) {
	a := drawing("GPU-0", 100)
	n := started(t, newFakeLibrary(a))
	h := n.list()[0]
	h.Sample(t.Context())
	calling(a, "GPU-new")
	n.list()
	n.turn(staleAfter)
	calling(a, "GPU-0")
	n.list()
	h.Sample(t.Context())
	want(t, "a window across the time it was gone", n.read(h).Profiling.SMActive, metric.NoData)
}

// Two chips of one board share a serial number; nothing goes by it.
func TestOneSerialTwice(t *testing.T) {
	a, b := drawing("GPU-0", 100), drawing("GPU-1", 200)
	for _, d := range []*fakeDevice{a, b} {
		d.GetSerialFunc = func() (string, nvml.Return) { return "1650123000001", nvml.SUCCESS }
	}
	n := started(t, newFakeLibrary(a, b))
	n.draws("two of one board", "GPU-0 100, GPU-1 200")
	for _, h := range n.list() {
		if h.Identity().Serial != "1650123000001" {
			t.Errorf("%s has the serial %q", h.identity.UUID, h.Identity().Serial)
		}
	}
}

func TestEmptyUUID(t *testing.T) {
	var said strings.Builder
	past := newArchive()
	past.log = slog.New(slog.NewTextHandler(&said, nil))
	r, err := open(newFakeLibrary(drawing("", 100), drawing("GPU-1", 200)), config(), past, everything())
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, r)
	n := &node{TB: t, reader: r}
	n.draws("one without a UUID", "GPU-1 200")
	if !strings.Contains(said.String(), "device 0: it has no uuid") {
		t.Errorf("said:\n%s", said.String())
	}
}

func TestManyDevices(t *testing.T) {
	var all []device
	for i := range 64 {
		all = append(all, drawing(fmt.Sprint("GPU-", i), uint32(100+i)))
	}
	n := started(t, newFakeLibrary(all...))
	handles := n.list()
	if len(handles) != 64 {
		t.Fatalf("%d devices, want 64", len(handles))
	}
	for i, h := range handles {
		want(t, h.identity.UUID, n.read(h).Power.Draw, float64(100+i))
		if h.identity.Index != i {
			t.Errorf("%s has the index %d, want %d", h.identity.UUID, h.identity.Index, i)
		}
	}
}

// What a sick board tells of itself with bytes that are no text is left out.
func TestIdentityOfGarbage(t *testing.T) {
	d := answering("GPU-0")
	garbage := func() (string, nvml.Return) { return "16501\x02\xff", nvml.SUCCESS }
	d.GetSerialFunc, d.GetBoardPartNumberFunc, d.GetVbiosVersionFunc = garbage, garbage, garbage
	d.GetInforomImageVersionFunc = garbage
	d.GetNameFunc = func() (string, nvml.Return) { return "  NVIDIA H100 80GB HBM3 ", nvml.SUCCESS }
	d.GetMinorNumberFunc = func() (int, nvml.Return) { return 1<<32 - 1, nvml.SUCCESS }
	d.GetArchitectureFunc = func() (nvml.DeviceArchitecture, nvml.Return) { return 1<<32 - 1, nvml.SUCCESS }
	n := started(t, newFakeLibrary(d))
	id := n.list()[0].Identity()
	if id.Serial != "" || id.PartNumber != "" || id.FirmwareVersion != "" || id.Minor != "" || id.Architecture != "" {
		t.Errorf("%+v", id)
	}
	if id.Model != "NVIDIA H100 80GB HBM3" {
		t.Errorf("model %q", id.Model)
	}
	if got := n.read(n.list()[0]).Platform.FirmwareInfo[0].Labels.Get("gpu_inforom_version"); got != "" {
		t.Errorf("inforom %q", got)
	}
}
