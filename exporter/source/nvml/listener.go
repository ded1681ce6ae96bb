//go:build cgo

package nvml

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const (
	// waitFor is how long one wait for an event takes at most, in milliseconds. Closing the listener takes as
	// long, and every renewal of the session waits for that.
	waitFor = 250
	// betweenEvents limits a driver that reports one event after the other to a small part of a core.
	betweenEvents = time.Millisecond
	// giveUp is after how long a driver that does not return from a call is left open when closing.
	giveUp = 5 * time.Second
	// Pauses after a failed wait, doubled while the failure lasts.
	shortestPause, longestPause = time.Second, time.Minute
)

// xidEvents is the type of event that is waited for. The driver reports events only while a process waits
// for them, and of several at once only the last.
const xidEvents = nvml.EventTypeXidCriticalError

// errHanging leaves the library open, because the driver still has one of our threads.
var errHanging = errors.New("nvml: the driver does not come back from a call; it is left open")

// listener waits for the XIDs of all devices of an open library. One goroutine makes all calls of the
// driver and owns the event set, so that no lock is held over a call that may hang.
type listener struct {
	lib      library
	log      *slog.Logger
	requests chan registration
	stop     chan struct{}
	stopped  chan struct{} // closed when nothing of the driver is held any more
	giveUp   time.Duration

	// What follows is touched by the goroutine alone.
	set     nvml.EventSet // nil until the first device is registered
	watched map[nvml.Device]*xids
}

// registration asks the listener to wait for the events of some devices.
type registration struct {
	devices []watch
	done    chan struct{} // closed when all were tried
}

// watch is one device to listen to.
type watch struct {
	dev    device
	counts *xids
	on     *atomic.Bool // set when the driver reports the device's XIDs
}

// maxRegistrations is how many registrations may wait for a driver that hangs.
const maxRegistrations = 64

// listen starts a listener. It makes no call of the driver before a device is registered.
func listen(lib library, log *slog.Logger) *listener {
	l := &listener{
		lib: lib, log: log, requests: make(chan registration, maxRegistrations), stop: make(chan struct{}),
		stopped: make(chan struct{}), giveUp: giveUp, watched: map[nvml.Device]*xids{},
	}
	go l.run()
	return l
}

// watch counts the XIDs of devices from now on. It waits until the driver has taken the registrations, but
// no longer than one wait for an event may take: behind a driver that hangs they are made later.
func (l *listener) watch(devices []watch) {
	if len(devices) == 0 {
		return
	}
	r := registration{devices, make(chan struct{})}
	select {
	case l.requests <- r:
	default:
		l.log.Warn("cannot listen for the XIDs of more devices: the driver does not return from waiting", "devices", len(devices))
		return
	}
	t := time.NewTimer(2 * waitFor * time.Millisecond)
	defer t.Stop()
	select {
	case <-r.done:
	case <-l.stopped:
	case <-t.C:
	}
}

// close ends the waiting and frees the event set. It returns errHanging when the driver does not return
// from a call within giveUp.
func (l *listener) close() error {
	close(l.stop)
	if !ends(l.giveUp, func() { <-l.stopped }) {
		return errHanging
	}
	return nil
}

func (l *listener) run() {
	defer close(l.stopped)
	defer l.free()
	failing := time.Duration(0) // pause after the last failure; 0: the last wait did not fail
	for l.pause(0) {
		if len(l.watched) == 0 {
			if !l.idle() {
				return
			}
			continue
		}
		began := time.Now()
		event, ret := l.set.Wait(waitFor)
		rest := waitFor*time.Millisecond - time.Since(began) // a driver that returns at once must not cost a core
		switch {
		case ret == nvml.SUCCESS && l.note(event):
			rest, failing = betweenEvents, 0
		case ret == nvml.SUCCESS, ret == nvml.ERROR_TIMEOUT: // nothing happened that is counted
			failing = 0
		default:
			if failing == 0 {
				l.log.Warn("waiting for XIDs failed; it is tried again", "err", ret.Error())
			}
			failing = min(max(2*failing, shortestPause), longestPause)
			rest = failing
		}
		if !l.pause(rest) {
			return
		}
		if failing > 0 {
			l.renew() // a device that is lost must not hide the others
		}
	}
}

// pause registers devices for that long, and reports whether the listener goes on.
func (l *listener) pause(d time.Duration) bool {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	for {
		select {
		case <-l.stop:
			return false
		case r := <-l.requests:
			l.register(r)
		case <-t.C:
			return true
		}
	}
}

// idle waits for the first device, and reports whether the listener goes on.
func (l *listener) idle() bool {
	select {
	case <-l.stop:
		return false
	case r := <-l.requests:
		l.register(r)
		return true
	}
}

// register registers devices with the event set. Without a set there are no XIDs from the driver, and the
// rest is read all the same.
func (l *listener) register(r registration) {
	defer close(r.done)
	if l.set == nil {
		set, ret := l.lib.EventSetCreate()
		if ret != nvml.SUCCESS {
			l.log.Warn("cannot listen for XIDs", "err", ret.Error())
			return
		}
		l.set = set
	}
	for _, w := range r.devices {
		types, ret := w.dev.GetSupportedEventTypes()
		if ret != nvml.SUCCESS || types&xidEvents == 0 {
			continue
		}
		if ret := w.dev.RegisterEvents(xidEvents, l.set); ret != nvml.SUCCESS {
			if ret != nvml.ERROR_NOT_SUPPORTED {
				l.log.Warn("cannot listen for the XIDs of a device", "uuid", w.counts.uuid, "err", ret.Error())
			}
			continue
		}
		l.watched[w.dev.Raw()] = w.counts
		w.on.Store(true)
	}
}

// note counts an event, and reports whether it was an XID of a device that is listened to. The handle
// identifies the device: one that is lost has no name any more.
func (l *listener) note(event nvml.EventData) bool {
	if event.EventType&xidEvents == 0 {
		return false
	}
	counts := l.watched[event.Device]
	if counts == nil {
		l.log.Warn("XID of an unknown device", "xid", event.EventData)
		return false
	}
	counts.add(event.EventData, time.Now())
	return true
}

// renew replaces the set by one with the devices that can still be registered, unless there are none.
func (l *listener) renew() {
	next, ret := l.lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		return
	}
	registered := false
	for dev := range l.watched {
		registered = dev.RegisterEvents(xidEvents, next) == nvml.SUCCESS || registered
	}
	if registered {
		l.set, next = next, l.set
	}
	if ret := next.Free(); ret != nvml.SUCCESS {
		l.log.Warn("an event set was not freed", "err", ret.Error())
	}
}

// free frees the set.
func (l *listener) free() {
	if l.set == nil {
		return
	}
	if ret := l.set.Free(); ret != nvml.SUCCESS {
		l.log.Warn("the event set was not freed", "err", ret.Error())
	}
	l.set = nil
}
