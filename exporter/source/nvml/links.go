//go:build cgo

package nvml

import (
	"math"
	"slices"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// links are those of one device: NVLinks, its PCI Express and its connections chip to chip.
type links struct {
	all    []link
	n      [2]int // NVLinks, and connections chip to chip
	told   bool   // the driver has said how many there are
	fields batch[telemetry.Link]
	slow   *throughput // nil: not asked for
}

// link is one, with what does not change of it.
type link struct {
	sort   telemetry.LinkType
	id     int
	labels *metric.Labels
	info   []metric.Keyed // what is at the other end; nil: not told
	wasUp  bool           // the driver was asked about the other end since it is up
}

// mostLinks is the most of one sort a device of any generation has.
const mostLinks = nvml.NVLINK_MAX_LINKS

// begin forgets the links of a device handed out anew.
func (l *links) begin(p *pass) {
	*l = links{}
	chosen := p.h.reader.chosen
	if chosen.metrics["gpu.link.throughput"] && !p.h.answers.absent[askThroughput] {
		l.slow = &throughput{now: p.h.reader.now}
		p.h.measure(p.h.settled, l.slow)
	}
}

// resume goes on measuring after a renewal of the session.
func (l *links) resume(p *pass) {
	if l.slow != nil {
		p.h.measure(p.h.settled, l.slow)
	}
}

// forget asks again for what was refused, and how many links there are.
func (l *links) forget() {
	l.told = false
	l.fields.forget()
}

// find lists the links, of which there are none of a sort until the driver has told how many. A
// board does not lose any.
func (l *links) find(p *pass) {
	before := l.n
	l.told = true
	for i, id := range [...]uint32{nvml.FI_DEV_NVLINK_LINK_COUNT, nvml.FI_DEV_C2C_LINK_COUNT} {
		n, told := count(p, id)
		l.n[i] = max(l.n[i], n)
		l.told = l.told && told
	}
	if l.all != nil && l.n == before {
		return
	}
	l.all, l.fields = nil, newBatch[telemetry.Link](uptime)
	l.add(p, telemetry.LinkTypePCIE, 1)
	l.add(p, telemetry.LinkTypeNvlink, l.n[0])
	l.add(p, telemetry.LinkTypeC2c, l.n[1])
}

// count reads how many links of a sort there are, and says whether the driver will not say otherwise.
func count(p *pass, id uint32) (n int, told bool) {
	v := []nvml.FieldValue{{FieldId: id, NvmlReturn: uint32(nvml.ERROR_NO_DATA)}}
	_, why := call(p, askFields, 0, func() (nvml.Return, nvml.Return) { return 0, p.dev.GetFieldValues(v) })
	if ret := nvml.Return(v[0].NvmlReturn); why == nil && ret == nvml.ERROR_INVALID_ARGUMENT { // a number it does not know
		why = metric.Unsupported
	} else if why == nil {
		why, _ = reason(ret)
	}
	if why != nil {
		return 0, why == metric.Unsupported
	}
	number, ok := raw{v[0].ValueType, v[0].Value}.number()
	if !ok || number < 0 || number > mostLinks {
		return 0, false
	}
	return int(number), true
}

func (l *links) add(p *pass, sort telemetry.LinkType, n int) {
	for id := range n {
		l.fields.add(p.h.reader.chosen.link, p.h.reader.major, len(l.all), uint32(id), func(f *field[telemetry.Link]) bool {
			return f.link == sort
		})
		l.all = append(l.all, link{sort: sort, id: id, labels: telemetry.LinkAttributes{LinkType: sort, LinkID: int64(id)}.Labels()})
	}
}

func (l *links) read(p *pass, out *telemetry.Device) {
	if !l.told {
		l.find(p)
	}
	if p.down != nil {
		return
	}
	parts := slices.Grow(out.Links[:0], len(l.all))[:len(l.all)]
	for i := range l.all {
		parts[i] = telemetry.Part[telemetry.Link]{Labels: l.all[i].labels}
	}
	l.fields.read(p, func(i int) *telemetry.Link { return &parts[i].Read })
	for i := range l.all {
		x, read := &l.all[i], &parts[i].Read.Links
		switch x.sort {
		case telemetry.LinkTypePCIE:
			l.pcie(p, read)
		case telemetry.LinkTypeNvlink:
			up, _ := read.Up.Get()
			x.ask(p, up == 1)
			read.Info = x.info
		}
	}
	out.Links = parts
}

// remoteTypes are the words for nvmlIntNvLinkDeviceType_t.
var remoteTypes = map[nvml.IntNvLinkDeviceType]string{
	nvml.NVLINK_DEVICE_TYPE_GPU:    "gpu",
	nvml.NVLINK_DEVICE_TYPE_IBMNPU: "host",
	nvml.NVLINK_DEVICE_TYPE_SWITCH: "switch",
}

// ask learns what is at the other end of a link when it has come up, and again until it is told.
func (x *link) ask(p *pass, up bool) {
	if p.down != nil || up == x.wasUp {
		return
	}
	if !up || !p.h.reader.chosen.metrics["gpu.link.info"] || p.h.answers.absent[askRemote] {
		x.wasUp = up
		return // what was at the other end still is
	}
	sort, ret := p.dev.GetNvLinkRemoteDeviceType(x.id)
	if why, _ := reason(ret); why != nil {
		x.wasUp = why == metric.Unsupported
		return
	}
	x.wasUp, x.info = true, nil
	a := telemetry.LinksInfoAttributes{LinkRemoteType: remoteTypes[sort]}
	if pci, ret := p.dev.GetNvLinkRemotePciInfo(x.id); ret == nvml.SUCCESS {
		a.LinkRemoteAddress = remoteAddress(printable(text(pci.BusId[:])))
	}
	if labels := a.Labels(); labels != nil {
		x.info = info(labels)
	}
}

// remoteAddress returns the normalized PCI address of the other end of a link, empty when there is none:
// the driver reports ffffffff:ff:ff.0 for an NVSwitch that is not on this machine's bus. No PCI device
// has the number ff; the highest is 1f.
func remoteAddress(id string) string {
	address := telemetry.NormalizePCI(id)
	if strings.Contains(address, ":ff:ff.") {
		return ""
	}
	return address
}

// pcie reads what is no field of the link to the host. A device that answers is reached by it.
func (l *links) pcie(p *pass, out *telemetry.Links) {
	dev := p.dev
	generation := lanes(p, &out.Generation, askGeneration, dev.GetCurrPcieLinkGeneration)
	width := lanes(p, &out.Width, askWidth, dev.GetCurrPcieLinkWidth)
	most, widest := &p.h.fixed.generation, &p.h.fixed.width
	if *most == 0 || *widest == 0 {
		*most = lanes(p, &out.GenerationLimit, askMaxGeneration, dev.GetMaxPcieLinkGeneration)
		*widest = lanes(p, &out.WidthLimit, askMaxWidth, dev.GetMaxPcieLinkWidth)
	} else if p.down == nil {
		out.GenerationLimit.Set(float64(*most))
		out.WidthLimit.Set(float64(*widest))
	}
	speed(&out.Speed, &out.Generation, &out.Width, generation, width)
	speed(&out.SpeedLimit, &out.GenerationLimit, &out.WidthLimit, *most, *widest)
	if l.slow != nil {
		l.slow.read(&out.Throughput)
	}
}

// lanes reads a generation or a number of lanes; a link has at least one of each.
func lanes(p *pass, v *metric.Value, q question, ask func() (int, nvml.Return)) int {
	n, why := call(p, q, 0, ask)
	if why == nil && (n < 1 || n > 64) {
		why = metric.Implausible
	}
	keep(v, why, float64(n))
	if why != nil {
		return 0
	}
	return n
}

// laneSpeeds are the bytes a second of one lane, by generation of PCI Express: its transfers a
// second, less what the line code takes (8b/10b, from the third on 128b/130b, 236 of 256 bytes in
// the sixth).
var laneSpeeds = [...]float64{
	1: 2.5e9 / 8 * 8 / 10, 2: 5e9 / 8 * 8 / 10,
	3: 8e9 / 8 * 128 / 130, 4: 16e9 / 8 * 128 / 130, 5: 32e9 / 8 * 128 / 130,
	6: 64e9 / 8 * 236 / 256,
}

// speed follows from generation and width; what one of them lacks, it lacks.
func speed(v, generation, width *metric.Value, g, lanes int) {
	switch {
	case g == 0:
		keep(v, generation.Why(), 0)
	case lanes == 0:
		keep(v, width.Why(), 0)
	case g >= len(laneSpeeds):
		v.Fail(metric.Unsupported)
	default:
		v.Set(math.Round(laneSpeeds[g] * float64(lanes)))
	}
}
