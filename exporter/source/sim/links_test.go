package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

const (
	transmit = telemetry.NetworkIoDirectionTransmit
	receive  = telemetry.NetworkIoDirectionReceive
)

// linksOf are those of one sort.
func linksOf(x *telemetry.Device, kind telemetry.LinkType) (all []*telemetry.Links) {
	for i := range x.Links {
		if x.Links[i].Labels.Get("gpu_link_type") == kind.String() {
			all = append(all, &x.Links[i].Read.Links)
		}
	}
	return all
}

// pcieOf is the one of the board.
func pcieOf(t *testing.T, x *telemetry.Device) *telemetry.Links {
	t.Helper()
	all := linksOf(x, telemetry.LinkTypePCIE)
	if len(all) != 1 {
		t.Fatalf("%d ways to the host", len(all))
	}
	return all[0]
}

// Boards in P8 let the way to the host fall back, those that stay in P0 do not: nvidia-smi showed the
// fifth generation of idle H100, H200 and B200.
func TestGenerations(t *testing.T) {
	for id, want := range map[string]struct{ rest, work, nvlinks, nvlink, speed float64 }{
		"h100": {5, 5, 18, 4, 26.562e9}, "h200": {5, 5, 18, 4, 26.562e9}, "b200": {5, 5, 18, 5, 53.125e9},
		"a100": {4, 4, 12, 3, 25e9}, "l40s": {1, 4, 0, 0, 0}, "rtx4090": {1, 4, 0, 0, 0},
	} {
		c, devices := start(t, id+"x1", 1)
		rest, work := restAndWork(t, c, devices[0])
		for _, at := range []struct {
			x          *telemetry.Device
			generation float64
		}{{rest, want.rest}, {work, want.work}} {
			p := pcieOf(t, at.x)
			if g, limit := number(t, p.Generation), number(t, p.GenerationLimit); g != at.generation || limit != want.work {
				t.Errorf("%s: generation %v of %v; want %v of %v", id, g, limit, at.generation, want.work)
			}
			// The table of the standard: a lane of generation 1 carries 250 MB/s, of 4 1.969, of 5 3.938.
			lane := map[float64]float64{1: 0.25e9, 4: 1.969e9, 5: 3.938e9}
			for name, of := range map[string][2]float64{
				"speed":       {number(t, p.Speed), number(t, p.Generation)},
				"speed limit": {number(t, p.SpeedLimit), number(t, p.GenerationLimit)},
			} {
				if exact := 16 * lane[of[1]]; math.Abs(of[0]-exact) > 0.001*exact {
					t.Errorf("%s: %s %v B/s at generation %v; want %v", id, name, of[0], of[1], exact)
				}
			}
			links := linksOf(at.x, telemetry.LinkTypeNvlink)
			if len(links) != int(want.nvlinks) {
				t.Errorf("%s has %d NVLinks; want %v", id, len(links), want.nvlinks)
			}
			for _, l := range links {
				if g, s := number(t, l.Generation), number(t, l.Speed); g != want.nvlink || math.Abs(s-want.speed) > 1e6 {
					t.Errorf("%s: NVLink %v at %v B/s; want %v at %v", id, g, s, want.nvlink, want.speed)
				}
			}
		}
	}
	for _, id := range []string{"mi300x", "gaudi3"} {
		_, devices := start(t, id+"x1", 1)
		if x := read(t, devices[0]); x.Links != nil {
			t.Errorf("%s tells of %d links", id, len(x.Links))
		}
	}
}

// What is at the other end is a switch, whose address is not a board's; Blackwell's have none.
func TestSwitches(t *testing.T) {
	_, devices := start(t, "h100x8,b200x8,a100x8", 1)
	boards, switches := map[string]bool{}, map[string]int{}
	for _, d := range devices {
		boards[d.Identity().PCI] = true
		for _, l := range linksOf(read(t, d), telemetry.LinkTypeNvlink) {
			far := l.Info[0].Labels
			if got := far.Get("gpu_link_remote_type"); got != "switch" {
				t.Errorf("%s is linked to a %q", d.Identity().Model, got)
			}
			switches[d.(*device).board.id+" "+far.Get("gpu_link_remote_address")]++
		}
	}
	for at := range switches {
		if boards[strings.Fields(at + " ")[len(strings.Fields(at))-1]] {
			t.Errorf("switch %s is where a board is", at)
		}
	}
	if switches["b200 "] != 8*18 || len(switches) != 1+4+6 {
		t.Errorf("links by switch: %v", switches)
	}
}

// Jobs of several boards use NVLink, of one do not, and at rest the links sleep. Without NVLink the
// boards of a job meet over the host.
func TestWhoUsesLinks(t *testing.T) {
	rates := func(node string) (nvlink, host float64) {
		c, devices := start(t, node, 1)
		rest, work := restAndWork(t, c, devices[0])
		c.moveTo(c.t.Sub(noon) + time.Second)
		later := read(t, devices[0])
		for i, l := range linksOf(work, telemetry.LinkTypeNvlink) {
			n := number(t, linksOf(later, telemetry.LinkTypeNvlink)[i].Io[transmit]) - number(t, l.Io[transmit])
			nvlink += n
			if sleeps, ok := l.LowPower.Get(); ok && (sleeps == 1) != (n == 0) {
				t.Errorf("%s: link %d carries %v B/s and sleeps: %v", node, i, n, sleeps)
			}
			before := linksOf(rest, telemetry.LinkTypeNvlink)[i]
			if io := number(t, before.Io[transmit]); io != 0 {
				t.Errorf("%s: link %d carried %v B before the first job", node, i, io)
			}
		}
		return nvlink, number(t, pcieOf(t, later).Io[transmit]) - number(t, pcieOf(t, work).Io[transmit])
	}
	for _, id := range []string{"h100", "b200", "a100"} {
		alone, _ := rates(id + "x1")
		together, _ := rates(id + "x2")
		if alone != 0 || together < 10e9 {
			t.Errorf("%s: %v B/s over NVLink alone, %v with another", id, alone, together)
		}
	}
	_, alone := rates("rtx4090x1")
	_, together := rates("rtx4090x2")
	if together < 10*alone {
		t.Errorf("rtx4090: %v B/s to the host alone, %v with another", alone, together)
	}
}

// The bytes that went are the integral of the bytes a second, fit through the link, and are at least
// what the memory of a job was filled with.
func TestLinksCarryWhatGoes(t *testing.T) {
	slow, scraped := start(t, "h100x5,b200x1,l40sx1,rtx4090x2", 3)
	fast, watched := start(t, "h100x5,b200x1,l40sx1,rtx4090x2", 3)
	for i, d := range scraped {
		random := rand.New(rand.NewPCG(5, uint64(i)))
		over, at := time.Duration(0), time.Duration(0)
		var went [2]float64 // over PCI Express, in the ticks that are over
		for at < 50*time.Minute {
			at += time.Duration(random.Int64N(int64(3 * time.Minute)))
			for ; over+time.Second <= at; over += time.Second {
				fast.moveTo(over)
				x := read(t, watched[i])
				for way, v := range pcieOf(t, x).Throughput {
					went[way] += number(t, v)
				}
				if fault := tooFast(t, watched[i].(*device), x); fault != "" {
					t.Fatalf("%s after %v: %s", d.Identity().Model, over, fault)
				}
			}
			slow.moveTo(at)
			x := read(t, d)
			p := pcieOf(t, x)
			for way := range went {
				want := went[way] + (at-over).Seconds()*number(t, p.Throughput[way])
				near(t, fmt.Sprintf("%s %d after %v: PCI Express", d.Identity().Model, i, at), number(t, p.Io[way]), want)
			}
			if in, used := number(t, p.Io[receive]), number(t, x.Memory.Usage); in < used {
				t.Errorf("%s after %v: %v B came in, %v B are in use", d.Identity().Model, at, in, used)
			}
			if t.Failed() {
				return
			}
		}
	}
}

// tooFast says which link carries more in this second than it can.
func tooFast(t *testing.T, d *device, x *telemetry.Device) string {
	for _, l := range x.Links {
		limit := number(t, l.Read.Links.Speed)
		ways := []road{nvlinkOut, nvlinkIn}
		if l.Labels.Get("gpu_link_type") == telemetry.LinkTypePCIE.String() {
			ways = []road{pcieOut, pcieIn}
		}
		for _, r := range ways {
			if _, rate := d.physics.carried(r); rate > 0.8*limit {
				return fmt.Sprintf("%s carries %v of %v B/s", l.Labels.Text(), rate, limit)
			}
		}
	}
	return ""
}

// Errors are those the model's links count, NVLink's on one link of a board, and what is told of
// single bits agrees with them.
func TestLinkErrors(t *testing.T) {
	c, devices := start(t, "h100x2,b200x2,a100x2,rtx4090x1", 1)
	c.moveTo(longEnough)
	kinds := func(l *telemetry.Links) (told []string, n float64) {
		for k, v := range l.Errors {
			if errors, ok := v.Get(); ok {
				told = append(told, telemetry.LinkErrorType(k).String())
				n += errors
			}
		}
		slices.Sort(told)
		return told, n
	}
	for _, d := range devices {
		b, x := d.(*device).board, read(t, d)
		if _, n := kinds(pcieOf(t, x)); n == 0 {
			t.Errorf("%s: no error on PCI Express in %v", b.id, longEnough)
		}
		bad := 0
		for _, l := range linksOf(x, telemetry.LinkTypeNvlink) {
			told, n := kinds(l)
			want := "crc recovery replay"
			if b.id == "b200" {
				want = "discarded effective header integrity malformed overrun receive recovery recovery_failed remote symbol"
			}
			if got := strings.Join(told, " "); got != want {
				t.Errorf("%s: NVLink counts %s; want %s", b.id, got, want)
			}
			if n > 0 {
				bad++
			}
			if b.id != "b200" {
				continue
			}
			errors, share := number(t, l.Errors[telemetry.LinkErrorTypeSymbol]), number(t, l.BitError[telemetry.LinkBitErrorTypeSymbol])
			if (errors == 0) != (share == 15e-255) || share > 1e-15 {
				t.Errorf("%s: %v errors, a share of %v", b.id, errors, share)
			}
			if errors > 0 && number(t, l.FecBlocks[1]) < 1e3*errors {
				t.Errorf("%s: %v blocks with an error mended, %v errors left", b.id, number(t, l.FecBlocks[1]), errors)
			}
		}
		if len(linksOf(x, telemetry.LinkTypeNvlink)) > 0 && bad != 1 {
			t.Errorf("%s: %d NVLinks with errors; want the weak one", b.id, bad)
		}
	}
	if told, _ := kinds(pcieOf(t, read(t, devices[6]))); strings.Join(told, " ") != "replay replay_rollover" {
		t.Errorf("a GeForce counts %v", told)
	}
	if told, _ := kinds(pcieOf(t, read(t, devices[0]))); len(told) != 14 {
		t.Errorf("an H100 counts %v", told)
	}
}
