//go:build cgo

package nvml

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const (
	// waitFor is how long the driver is waited in for an event, ms; closing takes as long.
	waitFor = 1000
	// giveUp is after how long a driver that does not come back is left open when closing.
	giveUp = 5 * time.Second
	// Pauses after a fault of the driver, doubled while it lasts.
	shortestPause, longestPause = time.Second, time.Minute
)

// xidEvents is what is listened for. The driver tells of them only while someone listens, and of
// several at once only the last.
const xidEvents = nvml.EventTypeXidCriticalError

// listener waits for the XIDs of all devices of an open library.
type listener struct {
	lib     library
	log     *slog.Logger
	stop    chan struct{}
	stopped chan struct{} // nil until something is listened for
	giveUp  time.Duration

	mu      sync.Mutex // over what follows; the set is replaced by the waiting goroutine alone
	set     nvml.EventSet
	watched map[nvml.Device]*xids // by the driver's handle
}

// listen prepares an event set. Without one there are no XIDs, and the rest is read all the same.
func listen(lib library, log *slog.Logger) *listener {
	l := &listener{lib: lib, log: log, stop: make(chan struct{}), giveUp: giveUp, watched: map[nvml.Device]*xids{}}
	set, ret := lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		log.Warn("XIDs can not be listened for", "err", ret.Error())
		return l
	}
	l.set = set
	return l
}

// watch counts the device's XIDs from now on, and says whether the driver tells of them.
func (l *listener) watch(dev device, counts *xids) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.set == nil {
		return false
	}
	types, ret := dev.GetSupportedEventTypes()
	if ret != nvml.SUCCESS || types&xidEvents == 0 {
		return false
	}
	if ret := dev.RegisterEvents(xidEvents, l.set); ret != nvml.SUCCESS {
		if ret != nvml.ERROR_NOT_SUPPORTED {
			l.log.Warn("XIDs of a device can not be listened for", "uuid", counts.uuid, "err", ret.Error())
		}
		return false
	}
	l.watched[dev.Raw()] = counts
	if l.stopped == nil {
		l.stopped = make(chan struct{})
		go l.run(l.set)
	}
	return true
}

func (l *listener) run(set nvml.EventSet) {
	defer close(l.stopped)
	pause := shortestPause
	for !l.stopping(0) {
		event, ret := set.Wait(waitFor)
		switch ret {
		case nvml.SUCCESS:
			l.note(event)
			pause = shortestPause
			continue
		case nvml.ERROR_TIMEOUT: // nothing happened
			pause = shortestPause
			continue
		}
		if pause == shortestPause {
			l.log.Warn("waiting for XIDs failed", "err", ret.Error())
		}
		if l.stopping(pause) {
			return
		}
		pause = min(2*pause, longestPause)
		set = l.renew(set) // a device that is lost must not hide the others
	}
}

// stopping waits, and says whether the listener is to end.
func (l *listener) stopping(d time.Duration) bool {
	if d == 0 {
		select {
		case <-l.stop:
			return true
		default:
			return false
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-l.stop:
		return true
	case <-t.C:
		return false
	}
}

// note counts an event. The handle tells the device: one that is lost has no name any more.
func (l *listener) note(event nvml.EventData) {
	if event.EventType&xidEvents == 0 {
		return
	}
	l.mu.Lock()
	counts := l.watched[event.Device]
	l.mu.Unlock()
	if counts == nil {
		l.log.Warn("XID of an unknown device", "xid", event.EventData)
		return
	}
	counts.add(event.EventData, time.Now())
}

// renew replaces the set by one with the devices that still let themselves be listened to, unless
// there are none.
func (l *listener) renew(old nvml.EventSet) nvml.EventSet {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, ret := l.lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		return old
	}
	registered := false
	for dev := range l.watched {
		registered = dev.RegisterEvents(xidEvents, next) == nvml.SUCCESS || registered
	}
	if !registered {
		old, next = next, old
	}
	if ret := old.Free(); ret != nvml.SUCCESS {
		l.log.Warn("an event set was not freed", "err", ret.Error())
	}
	l.set = next
	return next
}

// errHanging leaves the library open, because the driver still has one of our threads.
var errHanging = errors.New("nvml: the driver does not come back from a call; it is left open")

// close ends the waiting and frees the set.
func (l *listener) close() error {
	close(l.stop)
	l.mu.Lock()
	stopped := l.stopped
	l.mu.Unlock()
	if stopped != nil {
		if !ends(l.giveUp, func() { <-stopped }) {
			return errHanging
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.set == nil {
		return nil
	}
	if ret := l.set.Free(); ret != nvml.SUCCESS {
		l.log.Warn("the event set was not freed", "err", ret.Error())
	}
	l.set = nil
	return nil
}
