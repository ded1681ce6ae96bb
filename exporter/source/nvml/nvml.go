//go:build cgo

package nvml

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
)

// build returns the functions of the source: one opens the library, the other follows the kernel's log,
// also while the library is closed.
func build(cfg Config) (opener func(context.Context) (source.Reader, error), follow func(context.Context)) {
	past := &archive{log: cfg.Logger, of: map[string]*history{}, xids: newXIDBook(cfg)}
	chosen := choose(cfg.On)
	if cfg.Owners {
		chosen.groups["processes"] = true
	}
	opener = func(context.Context) (source.Reader, error) {
		lib, err := find(cfg.Library)
		var r *reader
		if err == nil {
			r, err = open(lib, cfg, past, chosen)
		}
		if chosen.groups["xid"] && !errors.Is(err, source.ErrAbsent) { // a driver that fails may say why in the log
			past.xids.start()
		}
		if err != nil {
			return nil, err
		}
		return r, nil
	}
	return opener, past.xids.run
}

// archive keeps the histories of all devices the source has met, by UUID.
type archive struct {
	log  *slog.Logger
	xids *xidBook
	mu   sync.Mutex
	of   map[string]*history
}

func (a *archive) get(uuid string) *history {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[uuid] == nil {
		a.of[uuid] = &history{xids: a.xids.device(uuid), active: map[string]*activity{}}
	}
	return a.of[uuid]
}

// activity are the seconds of a device ("") or of one of its GPU instances.
func (h *history) activity(key string) *activity {
	if h.active[key] == nil {
		h.active[key] = new(activity)
	}
	return h.active[key]
}

// reader is the opened library.
type reader struct {
	lib           library
	log           *slog.Logger
	past          *archive
	chosen        *choice
	proc          string
	mostProcesses int
	bus           bus
	now           func() time.Time
	gate          *gate // shut while the session is renewed

	// What the driver says of itself, at each initialisation.
	absent       *[questions]bool
	driver       string // version
	major        int
	branch       string
	cuda         string // newest version served
	bandwidth    string // mode of the NVLinks
	confidential struct {
		enabled float64
		why     *metric.Reason
	}
	events *listener

	handles     []*handle // all ever listed, in the order they were met
	unwatched   []watch   // handed out since the last listing, and not yet known to the listener
	listed      int       // devices of the last listing
	unlisted    int       // devices that the last listing gave no handle of
	said        map[int]string
	again       recovery
	initialised bool
	hanging     bool // the driver has one of our threads, and is left open

	life       context.Context // of the reader
	end        context.CancelFunc
	stop       <-chan struct{} // closed when life ends
	background sync.WaitGroup  // what measures beside the reads
}

func open(lib library, cfg Config, past *archive, chosen *choice) (*reader, error) {
	r := &reader{
		lib: lib, log: past.log, past: past, chosen: chosen, proc: cfg.Proc, mostProcesses: cfg.Processes,
		bus: bus{cfg.Sys, cfg.Proc}, now: cfg.now, gate: newGate(), said: map[int]string{}, again: newRecovery(cfg),
	}
	r.life, r.end = context.WithCancel(context.Background())
	r.stop = r.life.Done()
	if err := r.init(); err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

// init initialises the library and learns what it is.
func (r *reader) init() error {
	if ret := r.lib.Init(); ret != nvml.SUCCESS {
		return initFault(ret)
	}
	r.initialised = true
	r.absent = absent(r.lib)
	r.driver = word(r.lib.SystemGetDriverVersion())
	r.major = major(r.driver)
	if n, ret := r.lib.SystemGetCudaDriverVersion(); ret == nvml.SUCCESS {
		r.cuda = cudaVersion(n)
	}
	if r.has("nvmlSystemGetDriverBranch") {
		if b, ret := r.lib.SystemGetDriverBranch(); ret == nvml.SUCCESS {
			r.branch = printable(text(b.Branch[:]))
		}
	}
	if r.has("nvmlSystemGetNvlinkBwMode") {
		if mode, ret := r.lib.SystemGetNvlinkBwMode(); ret == nvml.SUCCESS {
			r.bandwidth = strconv.FormatUint(uint64(mode), 10)
		}
	}
	r.confidential.why = metric.Unsupported
	if r.has("nvmlSystemGetConfComputeState") {
		s, ret := r.lib.SystemGetConfComputeState()
		r.confidential.why, _ = reason(ret)
		r.confidential.enabled = float64(min(s.CcFeature, nvml.CC_SYSTEM_FEATURE_ENABLED))
	}
	if r.chosen.groups["xid"] {
		r.events = listen(r.lib, r.log)
	}
	return nil
}

// has answers for functions that only some drivers have.
func (r *reader) has(symbol string) bool { return has(r.lib, symbol) }

// initFault explains why the library could not be initialised. The driver's words are taken at
// once: they are the library's, which may be closed by the time someone reads them.
func initFault(ret nvml.Return) error {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND, nvml.ERROR_DRIVER_NOT_LOADED:
		return fmt.Errorf("nvml: init: %w: %s", source.ErrAbsent, ret.Error())
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return fmt.Errorf("nvml: init: %s; after an upgrade of the driver a library once called stays loaded: %w", ret.Error(), source.ErrStale)
	case nvml.ERROR_UNKNOWN, nvml.ERROR_NO_PERMISSION, nvml.ERROR_OPERATING_SYSTEM:
		return fmt.Errorf("nvml: init: %s; %w", ret.Error(), source.ErrDenied)
	}
	return fmt.Errorf("nvml: init: %s", ret.Error())
}

// Devices lists the devices. One that does not give a handle costs only itself, and one that was
// there before stays: its readings say that it is lost.
func (r *reader) Devices(context.Context) ([]source.Device, error) {
	if err := r.recover(); err != nil {
		return nil, err
	}
	return r.list()
}

// count asks how many devices there are, and again when that fails in passing: an error closes the source,
// and all its devices are lost meanwhile.
func (r *reader) count() (n int, err error) {
	for _, pause := range [...]time.Duration{0, 100 * time.Millisecond, time.Second} {
		if pause > 0 && !r.pause(pause) {
			return 0, err
		}
		n, ret := r.lib.DeviceGetCount()
		if ret == nvml.SUCCESS {
			return n, nil
		}
		err = fmt.Errorf("nvml: count devices: %s", ret.Error())
		if _, whole := reason(ret); whole { // the driver is gone
			return 0, err
		}
		r.log.Warn("devices cannot be counted", "err", err)
	}
	return 0, err
}

func (r *reader) list() ([]source.Device, error) {
	n, err := r.count()
	if err != nil {
		return nil, err
	}
	if n == 0 && len(r.handles) == 0 { // only a new Init finds devices that come later
		return nil, fmt.Errorf("nvml: %w", source.ErrNoDevice)
	}
	var faults []error
	listed := map[*handle]bool{}
	for i := range n {
		h, err := r.device(i, listed)
		r.say(i, err)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		listed[h] = true
	}
	if r.events != nil {
		r.events.watch(r.unwatched)
		r.unwatched = nil
	}
	for _, h := range r.handles {
		if !listed[h] && len(faults) == 0 { // the driver no longer knows it; else it may be the one at fault
			h.given.Store(nil)
		}
	}
	if len(r.handles) == 0 {
		return nil, errors.Join(faults...)
	}
	out := make([]source.Device, len(r.handles))
	for i, h := range r.handles {
		out[i] = h
	}
	r.listed, r.unlisted = len(listed), len(faults)
	return out, nil
}

// device returns the handle of an index, the same for the same device, unless it is listed already.
func (r *reader) device(index int, listed map[*handle]bool) (*handle, error) {
	dev, ret := r.lib.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("nvml: device %d: get handle: %s", index, ret.Error())
	}
	uuid, ret := dev.GetUUID()
	switch {
	case ret != nvml.SUCCESS:
		return nil, fmt.Errorf("nvml: device %d: get uuid: %s", index, ret.Error())
	case uuid == "":
		return nil, fmt.Errorf("nvml: device %d: it has no uuid", index)
	}
	for _, h := range r.handles {
		if h.identity.UUID != uuid {
			continue
		}
		if listed[h] {
			r.withdraw(dev, h)
			return nil, fmt.Errorf("nvml: device %d: has the uuid of another: %s", index, uuid)
		}
		if g := h.given.Load(); g == nil || g.dev.Raw() != dev.Raw() {
			r.give(h, dev)
		}
		return h, nil
	}
	h := &handle{reader: r, log: r.log.With("uuid", uuid), identity: r.identify(dev, index, uuid), history: r.past.get(uuid)}
	r.give(h, dev)
	r.handles = append(r.handles, h)
	return h, nil
}

// withdraw takes a device of the driver's from the handle whose UUID it had before, if that is not h.
func (r *reader) withdraw(dev device, h *handle) {
	for _, other := range r.handles {
		if g := other.given.Load(); other != h && g != nil && g.dev.Raw() == dev.Raw() {
			other.given.Store(nil)
		}
	}
}

// give hands a device of the driver's to its handle, and takes it from one whose UUID it had before.
func (r *reader) give(h *handle, dev device) {
	r.withdraw(dev, h)
	g := &given{dev: dev, watched: new(atomic.Bool)}
	r.past.xids.place(h.identity.UUID, h.identity.PCI)
	if h.kept != nil {
		g.platform, g.firmware = h.kept.platform, h.kept.firmware
		g.watched.Store(h.kept.watched.Load()) // the XIDs stay on the page while the listener starts
	} else {
		r.describe(g, h.identity.Minor)
	}
	if r.events != nil {
		r.unwatched = append(r.unwatched, watch{dev, h.history.xids, g.watched})
	}
	h.given.Store(g)
	h.lost.Store(false) // until a look at it says otherwise
}

// describe asks for what does not change while the driver hands the device out.
func (r *reader) describe(g *given, minor string) {
	if r.chosen.metrics["gpu.platform.info"] {
		g.platform = r.platform(g.dev, minor)
	}
	if r.chosen.metrics["gpu.firmware.info"] {
		g.firmware = r.firmware(g.dev)
	}
}

// say logs the fault of an index when it is new, and its end.
func (r *reader) say(index int, err error) {
	now := ""
	if err != nil {
		now = err.Error()
	}
	if now == r.said[index] {
		return
	}
	r.said[index] = now
	if err != nil {
		r.log.Warn("device can not be listed", "index", index, "err", err)
	} else {
		r.log.Info("device can be listed again", "index", index)
	}
}

// pause waits, and says whether the library is still open.
func (r *reader) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-r.stop:
		return false
	case <-t.C:
		return true
	}
}
