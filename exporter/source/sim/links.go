package sim

import (
	"fmt"
	"math"
	"slices"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// link is a connection of a board and what never changes of it.
type link struct {
	labels *metric.Labels
	kind   telemetry.LinkType
	number int64
	info   []metric.Keyed
	counts kinds // of errors
}

// connect finds the links of a board: NVLinks to switches in turn, and PCI Express.
func connect(b *board) []link {
	var all []link
	for i := range b.nvlink.links {
		far := telemetry.LinksInfoAttributes{LinkRemoteType: "switch"}
		if b.nvlink.switches != 0 {
			far.LinkRemoteAddress = fmt.Sprintf("0000:%02x:00.0", 0xc1+i%b.nvlink.switches)
		}
		all = append(all, b.link(telemetry.LinkTypeNvlink, i, always(far.Labels())))
	}
	if b.pcie.lanes != 0 {
		all = append(all, b.link(telemetry.LinkTypePCIE, 0, nil))
	}
	return all
}

func (b *board) link(kind telemetry.LinkType, number int64, info []metric.Keyed) link {
	labels := telemetry.LinkAttributes{LinkType: kind, LinkID: number}.Labels()
	return link{labels: labels, kind: kind, number: number, info: info, counts: b.counts(kind)}
}

// The errors boards count, as NVIDIA's header says of its fields; of PCI Express a GeForce tells little.
var (
	countedByNVLink  = kindsOf(telemetry.LinkErrorTypeReplay, telemetry.LinkErrorTypeRecovery, telemetry.LinkErrorTypeCrc)
	countedByNVLink5 = kindsOf(telemetry.LinkErrorTypeMalformed, telemetry.LinkErrorTypeOverrun, telemetry.LinkErrorTypeReceive,
		telemetry.LinkErrorTypeRemote, telemetry.LinkErrorTypeHeader, telemetry.LinkErrorTypeIntegrity, telemetry.LinkErrorTypeDiscarded,
		telemetry.LinkErrorTypeRecovery, telemetry.LinkErrorTypeRecoveryFailed, telemetry.LinkErrorTypeEffective, telemetry.LinkErrorTypeSymbol)
	countedByGeForce = kindsOf(telemetry.LinkErrorTypeReplay, telemetry.LinkErrorTypeReplayRollover)
	countedByPCIe    = countedByGeForce | kindsOf(telemetry.LinkErrorTypeRecovery, telemetry.LinkErrorTypeCorrectable,
		telemetry.LinkErrorTypeNakReceived, telemetry.LinkErrorTypeReceiver, telemetry.LinkErrorTypeBadTlp, telemetry.LinkErrorTypeNakSent,
		telemetry.LinkErrorTypeBadDllp, telemetry.LinkErrorTypeNonfatal, telemetry.LinkErrorTypeFatal,
		telemetry.LinkErrorTypeUnsupportedRequest, telemetry.LinkErrorTypeLcrc, telemetry.LinkErrorTypeLane)
)

// counts are the errors a board counts on a sort of link.
func (b *board) counts(on telemetry.LinkType) kinds {
	switch {
	case on == telemetry.LinkTypePCIE && b.consumer:
		return countedByGeForce
	case on == telemetry.LinkTypePCIE && b.pcie.lanes != 0:
		return countedByPCIe
	case on == telemetry.LinkTypePCIE || b.nvlink.links == 0:
		return 0
	case b.age >= blackwell:
		return countedByNVLink5
	}
	return countedByNVLink
}

// noLink is what is told of a link where nothing is: no number, and that it is not supported.
var noLink = func() (l telemetry.Link) {
	for _, f := range telemetry.LinkFamilies {
		if slices.Contains(f.Desc.Sources, "sim") {
			for _, row := range f.Rows {
				row(&l).Fail(metric.Unsupported)
			}
		}
	}
	return l
}()

// readLinks tells of each link, in a slice of its own: what is read is kept by others.
func (d *device) readLinks() []telemetry.Part[telemetry.Link] {
	if len(d.links) == 0 {
		return nil
	}
	parts := make([]telemetry.Part[telemetry.Link], len(d.links))
	sent, _ := d.physics.carried(nvlinkOut)
	received, _ := d.physics.carried(nvlinkIn)
	for i := range d.links {
		l, out := &d.links[i], &parts[i].Read.Links
		parts[i].Labels, parts[i].Read = l.labels, noLink
		if l.kind == telemetry.LinkTypePCIE {
			d.pcie(out)
		} else {
			d.nvlink(l, out)
			out.Io[telemetry.NetworkIoDirectionTransmit].Set(sent)
			out.Io[telemetry.NetworkIoDirectionReceive].Set(received)
		}
		for k := range out.Errors {
			if kind := telemetry.LinkErrorType(k); l.counts.has(kind) {
				out.Errors[k].Set(float64(d.faults.linkErrors(l, kind, d.physics.tick)))
			}
		}
	}
	return parts
}

// nvlink tells of one of the links. What the board says to others goes over all of them alike.
func (d *device) nvlink(l *link, out *telemetry.Links) {
	b, x := d.board, &d.physics
	out.Info = l.info
	out.Up.Set(1)
	tell(&out.LowPower, b.age >= hopper, float64(1-x.awake()))
	out.Speed.Set(float64(b.nvlink.speed) * mega)
	out.Generation.Set(float64(b.nvlink.generation))
	if b.age >= blackwell {
		d.signal(l, out)
	}
}

// pcie tells of the way to the host. The generation falls with the clocks.
func (d *device) pcie(out *telemetry.Links) {
	p := &d.board.pcie
	generation := p.generation
	if d.physics.now.busy == 0 {
		generation = p.rest
	}
	out.Generation.Set(float64(generation))
	out.GenerationLimit.Set(float64(p.generation))
	out.Width.Set(float64(p.lanes))
	out.WidthLimit.Set(float64(p.lanes))
	out.Speed.Set(p.speed(generation))
	out.SpeedLimit.Set(p.speed(p.generation))
	for i, r := range [...]road{telemetry.NetworkIoDirectionTransmit: pcieOut, telemetry.NetworkIoDirectionReceive: pcieIn} {
		bytes, perSecond := d.physics.carried(r)
		out.Io[i].Set(bytes)
		out.Throughput[i].Set(perSecond)
	}
}

// speed is what all lanes together carry in a second one way, in bytes: transfers of a bit a lane,
// of which the first two generations send 10 for 8 and the next three 130 for 128.
func (p *pcie) speed(generation int64) float64 {
	transfers := [...]float64{1: 2.5e9, 2: 5e9, 3: 8e9, 4: 16e9, 5: 32e9}[generation]
	if generation <= 2 {
		return float64(p.lanes) * transfers * 8 / 10 / 8
	}
	return float64(p.lanes) * transfers * 128 / 130 / 8
}

// What forward error correction does on Blackwell's links: blocks of 5440 bits, of which nearly all
// arrive whole, and each further wrong symbol is a hundred times as rare. On the weak link of a board
// ten thousand times as many have one.
const (
	blockBytes  = 680
	rareness    = 1e-2
	firstWrong  = 1e-9
	weakerTimes = 1e4
)

// signal tells how well bits arrive.
func (d *device) signal(l *link, out *telemetry.Links) {
	received := d.physics.awakeSeconds() * float64(d.board.nvlink.speed) * mega
	for i, k := range [...]telemetry.LinkErrorType{
		telemetry.LinkBitErrorTypeEffective: telemetry.LinkErrorTypeEffective,
		telemetry.LinkBitErrorTypeSymbol:    telemetry.LinkErrorTypeSymbol,
	} {
		n := d.faults.linkErrors(l, k, d.physics.tick)
		out.BitError[i].Set(ratio(float64(n), 8*received))
	}
	blocks, share := received/blockBytes, firstWrong
	if l.number == d.faults.weakLink {
		share *= weakerTimes
	}
	whole := math.Floor(blocks)
	for i := range out.FecBlocks {
		if i > 0 {
			mended := math.Floor(blocks * share)
			out.FecBlocks[i].Set(mended)
			whole -= mended
			share *= rareness
		}
	}
	out.FecBlocks[telemetry.LinkFecErrorsSymbols0].Set(whole)
}

// ratio is a share as the driver writes it: a number up to 15 times a negative power of ten, of
// which the smallest it can write stands for none.
func ratio(errors, bits float64) float64 {
	if errors == 0 {
		return 15e-255
	}
	exponent := math.Ceil(-math.Log10(errors / bits))
	return math.Round(errors/bits*math.Pow(10, exponent)) * math.Pow(10, -exponent)
}
