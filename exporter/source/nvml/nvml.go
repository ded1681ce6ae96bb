//go:build cgo

package nvml

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/source"
)

func opener(cfg Config) func(context.Context) (source.Reader, error) {
	past := &archive{log: cfg.Logger, of: map[string]*history{}}
	chosen := choose(cfg.On)
	return func(context.Context) (source.Reader, error) {
		r, err := open(newShared(cfg.Library), past, chosen)
		if err != nil {
			return nil, err
		}
		return r, nil
	}
}

// archive keeps the histories of all devices the source has met, by UUID.
type archive struct {
	log *slog.Logger
	mu  sync.Mutex
	of  map[string]*history
}

func (a *archive) get(uuid string) *history {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[uuid] == nil {
		a.of[uuid] = &history{xids: newXIDs(uuid, a.log)}
	}
	return a.of[uuid]
}

// reader is the opened library.
type reader struct {
	lib    library
	log    *slog.Logger
	past   *archive
	chosen choice
	has    symbols
	driver string // version
	cuda   string // newest version served
	events *listener

	devices map[string]*handle // by UUID
	byIndex map[int]*handle    // the driver numbers once, when it is initialised
	said    map[int]string     // what was last logged of an index
}

func open(lib library, past *archive, chosen choice) (*reader, error) {
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return nil, initFault(ret)
	}
	r := &reader{
		lib: lib, log: past.log, past: past, chosen: chosen, has: lookUp(lib),
		devices: map[string]*handle{}, byIndex: map[int]*handle{}, said: map[int]string{},
	}
	r.driver = word(lib.SystemGetDriverVersion())
	if n, ret := lib.SystemGetCudaDriverVersion(); ret == nvml.SUCCESS {
		r.cuda = cudaVersion(n)
	}
	if chosen.groups["xid"] {
		r.events = listen(lib, r.log)
	}
	return r, nil
}

// initFault explains why the library could not be initialised. The driver's words are taken at
// once: they are the library's, which may be closed by the time someone reads them.
func initFault(ret nvml.Return) error {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND, nvml.ERROR_DRIVER_NOT_LOADED:
		return fmt.Errorf("nvml: init: %w: %s", source.ErrAbsent, ret.Error())
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return fmt.Errorf("nvml: init: %s; after an upgrade of the driver, start the exporter again: a library once called stays loaded", ret.Error())
	case nvml.ERROR_UNKNOWN, nvml.ERROR_NO_PERMISSION, nvml.ERROR_OPERATING_SYSTEM:
		return fmt.Errorf("nvml: init: %s; in a container, is it still allowed the devices?", ret.Error())
	}
	return fmt.Errorf("nvml: init: %s", ret.Error())
}

// Devices lists the devices. One that does not give a handle costs only itself, and one that was
// there before stays: its readings say that it is lost.
func (r *reader) Devices(context.Context) ([]source.Device, error) {
	n, ret := r.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("nvml: count devices: %s", ret.Error())
	}
	if n == 0 { // only a new Init finds devices that come later
		return nil, fmt.Errorf("nvml: %w: the driver has no device", source.ErrAbsent)
	}
	var out []source.Device
	var faults []error
	listed := map[*handle]bool{}
	for i := range n {
		h, err := r.device(i)
		if err != nil {
			faults = append(faults, err)
			h = r.byIndex[i]
		}
		r.say(i, err)
		if h != nil && !listed[h] {
			listed[h] = true
			out = append(out, h)
		}
	}
	if len(out) == 0 {
		return nil, errors.Join(faults...)
	}
	return out, nil
}

// device returns the handle of an index, the same for the same device.
func (r *reader) device(index int) (*handle, error) {
	dev, ret := r.lib.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("nvml: device %d: get handle: %s", index, ret.Error())
	}
	uuid, ret := dev.GetUUID()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("nvml: device %d: get uuid: %s", index, ret.Error())
	}
	h := r.devices[uuid]
	if h == nil {
		h = &handle{
			dev: dev, has: r.has, identity: r.identify(dev, index, uuid),
			chosen:  r.chosen.groups,
			batch:   newBatch(r.chosen.fields, major(r.driver), uptime),
			history: r.past.get(uuid),
		}
		if r.chosen.groups["throttle"] {
			h.reasons = supportedReasons(dev, r.has)
		}
		h.watched = r.events != nil && r.events.watch(dev, &h.history.xids)
		r.devices[uuid] = h
	}
	r.byIndex[index] = h
	return h, nil
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

// Close lets go of the driver: the listener first, which waits in the library.
func (r *reader) Close() error {
	if r.events != nil {
		if err := r.events.close(); err != nil {
			return err
		}
	}
	if ret := r.lib.Shutdown(); ret != nvml.SUCCESS {
		return fmt.Errorf("nvml: shutdown: %s", ret.Error())
	}
	return nil
}
