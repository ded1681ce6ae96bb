//go:build cgo

package nvml

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// handle reads one device, however often the driver hands it out anew.
type handle struct {
	reader   *reader
	log      *slog.Logger
	identity telemetry.Identity
	history  *history
	given    atomic.Pointer[given] // nil: the driver does not list it
	lost     atomic.Bool           // the last read found the device gone

	// What follows is the worker's alone.
	settled *given // what the rest was made for
	kept    *given // of the session before, whose readings go on in this one; nil: they begin again
	answers answers
	forgot  time.Time // when the refusals were last forgotten

	// Calls that used to succeed and are refused now.
	lapsed     int           // how many
	retryAt    time.Time     // when they are made again; zero: none is off
	retryPause time.Duration // from the next refusal to that

	mig     int    // mode at the last read; -1: not known
	reasons uint64 // the throttle bits the device can have
	fields  batch[telemetry.Device]
	links   links
	fans    fans
	busy    busy
	peak    peak
	gpm     profiler
	parts   partitions
	people  processes
	energy  counter
	errors  errorCounts
	place   place
	fixed   fixed
	pass    pass // of the read under way
	denied  bool // said that some readings need more rights
}

// given is a device as the driver hands it out.
type given struct {
	dev      device
	watched  *atomic.Bool // the driver reports its XIDs
	platform []metric.Keyed
	firmware []metric.Keyed
}

// history is what is counted of a device since the exporter started; it outlives the library
// being closed and opened again.
type history struct {
	busy   float64 // seconds; the device's own worker alone touches it
	meter  meter
	joules float64 // of the power samples
	active map[string]*activity
	xids   *xids
}

// Identity never changes.
func (h *handle) Identity() *telemetry.Identity { return &h.identity }

// Read asks everything the spec says NVML gives, each question once; a group is one file of this
// package, or numbered fields alone. A device that is lost still has the XIDs that tell why.
func (h *handle) Read(_ context.Context, out *telemetry.Device) *metric.Reason {
	h.reader.gate.enter()
	defer h.reader.gate.leave()
	g := h.given.Load()
	h.history.xids.read(g != nil && g.watched.Load(), &out.XID)
	if g == nil {
		return metric.Lost
	}
	p := &h.pass
	*p = pass{h: h, dev: g.dev, out: out}
	h.settle(p, g)
	h.modes(p)
	if h.reader.chosen.listsMIG() {
		h.parts.list(p)
	}
	for _, g := range groups {
		if h.reader.chosen.groups[g.name] {
			g.read(p, out)
		}
	}
	h.parts.read(p, out)
	h.fields.read(p, func(int) *telemetry.Device { return out })
	if p.down == nil {
		out.Platform.Info, out.Platform.FirmwareInfo = g.platform, g.firmware
	}
	h.lost.Store(p.down == metric.Lost)
	return p.down
}

// groups are the groups of the spec that are read by calls.
var groups = []struct {
	name string
	read func(*pass, *telemetry.Device)
}{
	{"power", func(p *pass, d *telemetry.Device) { power(p, &d.Power) }},
	{"thermal", func(p *pass, d *telemetry.Device) { thermal(p, &d.Thermal) }},
	{"memory", func(p *pass, d *telemetry.Device) { memory(p, &d.Memory) }},
	{"clock", func(p *pass, d *telemetry.Device) { clock(p, &d.Clock) }},
	{"utilization", func(p *pass, d *telemetry.Device) { utilization(p, &d.Utilization) }},
	{"throttle", func(p *pass, d *telemetry.Device) { throttle(p, &d.Throttle) }},
	{"mode", func(p *pass, d *telemetry.Device) { mode(p, &d.Mode) }},
	{"ecc", func(p *pass, d *telemetry.Device) { ecc(p, &d.ECC) }},
	{"repair", func(p *pass, d *telemetry.Device) { repair(p, &d.Repair) }},
	{"fabric", func(p *pass, d *telemetry.Device) { fabric(p, &d.Fabric) }},
	{"fan", func(p *pass, d *telemetry.Device) { p.h.fans.read(p, &d.Fan) }},
	{"encoder", func(p *pass, d *telemetry.Device) { encoder(p, &d.Encoder) }},
	{"profiling", func(p *pass, d *telemetry.Device) { p.h.gpm.read(p, &d.Profiling) }},
	{"links", func(p *pass, d *telemetry.Device) { p.h.links.read(p, d) }},
	{"processes", func(p *pass, d *telemetry.Device) { p.h.people.read(p, d) }},
}

// settle begins again when the driver has handed the device out again, and goes on when only the session
// is another one.
func (h *handle) settle(p *pass, g *given) {
	now := h.reader.now()
	if h.settled == g {
		if now.Sub(h.forgot) > forgetEvery {
			h.forget(now)
		}
		h.retryRefused(now)
		return
	}
	h.settled = g
	if h.kept != nil {
		h.kept = nil
		h.links.resume(p)
		return
	}
	r := h.reader
	h.mig, h.energy, h.errors = -1, counter{}, errorCounts{}
	h.gpm.free()
	h.parts.free()
	h.busy.seen, h.peak.seen, h.people.seen = 0, 0, 0 // a driver that was loaded again has a clock of its own
	h.answers.absent = r.absent
	h.fields = newBatch[telemetry.Device](uptime)
	h.fields.add(r.chosen.device, r.major, 0, 0, func(*field[telemetry.Device]) bool { return true })
	h.links.begin(p)
	h.forgetMode(now)
}

// modes reads whether MIG is on, by which everything else goes: what the device can answer changes with it.
func (h *handle) modes(p *pass) {
	if !h.reader.chosen.asksMIG() {
		return
	}
	type migMode struct{ current, pending int }
	m, why := call(p, askMIG, 0, func() (migMode, nvml.Return) {
		current, pending, ret := p.dev.GetMigMode()
		return migMode{current, pending}, ret
	})
	out := &p.out.Mode.MIGEnabled
	put(&out[telemetry.ModePhaseCurrent], why, state, whole, m.current)
	put(&out[telemetry.ModePhasePending], why, state, whole, m.pending)
	if why == nil && m.current != h.mig {
		if h.mig >= 0 {
			h.log.Info("MIG mode changed", "on", m.current == 1)
			h.forgetMode(h.reader.now())
		}
		h.mig = m.current
	}
}

// deny says once that the exporter lacks rights.
func (h *handle) deny() {
	if !h.denied {
		h.denied = true
		h.log.Info("some readings of the device need more rights than the exporter has")
	}
}

// Sample takes in what the driver forgets, and the windows of the profiler. What fails is told by Read.
func (h *handle) Sample(context.Context) {
	h.reader.gate.enter()
	defer h.reader.gate.leave()
	h.sample()
}

// sample is Sample inside the gate.
func (h *handle) sample() {
	g := h.given.Load()
	if g == nil {
		return
	}
	p := pass{h: h, dev: g.dev, out: new(telemetry.Device)}
	defer func() {
		if p.down == metric.Lost { // it may be long until the next read
			h.lost.Store(true)
		}
	}()
	h.settle(&p, g)
	h.modes(&p)
	on := h.reader.chosen
	if on.metrics["gpu.busy.time"] {
		_ = h.drain(&p)
	}
	if on.metrics["gpu.power.peak"] || on.metrics["gpu.energy"] {
		h.peak.sample(&p)
	}
	if on.groups["processes"] {
		h.people.sample(&p)
	}
	if on.groups["profiling"] {
		h.gpm.sample(&p)
		h.parts.list(&p)
		h.parts.sample(&p)
	}
}

// SamplePeriod is well within what the driver keeps.
func (h *handle) SamplePeriod() time.Duration { return samplePeriod }

// healthy reports whether the driver hands the device out and it answered the last time.
func (h *handle) healthy() bool { return h.given.Load() != nil && !h.lost.Load() }

// pause frees what the driver holds for the handle and keeps what was read, for the next session to go on
// with. No read is under way.
func (h *handle) pause() {
	h.gpm.pause()
	h.parts.pause()
	h.kept = h.given.Swap(nil)
}

// release frees what the driver holds for the handle. No read is under way.
func (h *handle) release() {
	h.gpm.free()
	h.parts.free()
	h.settled, h.kept = nil, nil
	h.given.Store(nil)
}
