//go:build cgo

package nvml

import (
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// letIn is how long reads under way may take before a renewal is put off: a device that hangs must not hold
// up the others.
const letIn = 500 * time.Millisecond

// betweenInits are the pauses before a failed Init is tried again while reads wait.
var betweenInits = [...]time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond}

// renew shuts the library down and initialises it again. Reads wait until the devices are handed out
// again: none of a healthy device finds it lost. What is counted and averaged goes on. When a device or the
// listener hangs, the session stays as it is.
func (r *reader) renew(why string) error {
	began := r.now()
	if !r.stopListening() {
		return nil
	}
	if !r.gate.close(letIn) {
		r.log.Debug("the session is not renewed while a device does not answer", "why", why)
		r.listenAgain()
		return nil
	}
	defer r.gate.open()
	r.log.Info("initialising NVML again", "why", why)
	kept := r.keep()
	r.shutdown()
	if err := r.initAgain(); err != nil {
		return err
	}
	if _, err := r.list(); err != nil {
		return err
	}
	for _, h := range kept {
		if h.given.Load() == nil { // it has gone meanwhile
			h.release()
		}
		h.sample() // the next windows begin now
	}
	r.log.Info("NVML is initialised again", "took", r.now().Sub(began), "devices", r.listed)
	return nil
}

// keep takes in what the driver has sampled until now, and frees what it holds for each device. It returns
// the devices that answer, whose readings go on after the renewal. No read is under way.
func (r *reader) keep() (kept []*handle) {
	for _, h := range r.handles {
		if h.healthy() {
			h.sample()
		}
		if h.healthy() {
			kept = append(kept, h)
			h.pause()
		} else {
			h.release()
		}
	}
	return kept
}

// initAgain initialises the library, and at once again when that fails.
func (r *reader) initAgain() (err error) {
	for _, pause := range betweenInits {
		if pause > 0 && !r.pause(pause) {
			return err
		}
		if err = r.init(); err == nil {
			return nil
		}
		r.log.Warn("NVML cannot be initialised again", "err", err)
	}
	return err
}

// stopListening ends the listener, and reports whether it has let go of the driver.
func (r *reader) stopListening() bool {
	if r.events == nil {
		return true
	}
	err := r.events.close()
	r.events = nil
	if err == nil {
		return true
	}
	r.hanging = true
	r.log.Warn("the session is not renewed: the driver does not return from waiting for events", "err", err)
	r.listenAgain()
	return false
}

// listenAgain starts a listener for the devices of a session that goes on.
func (r *reader) listenAgain() {
	if !r.chosen.groups["xid"] {
		return
	}
	r.events = listen(r.lib, r.log)
	for _, h := range r.handles {
		if g := h.given.Load(); g != nil {
			r.unwatched = append(r.unwatched, watch{g.dev, h.history.xids, g.watched})
		}
	}
	r.events.watch(r.unwatched)
	r.unwatched = nil
}

// shutdown lets go of the library. Nothing of it is held any more.
func (r *reader) shutdown() {
	if !r.initialised {
		return
	}
	r.initialised = false
	if ret := r.lib.Shutdown(); ret != nvml.SUCCESS {
		r.log.Warn("NVML was not shut down", "err", ret.Error())
	}
}

// Close lets go of the driver. It returns errHanging, and leaves the library open, when the driver does not
// return from a call.
func (r *reader) Close() error {
	r.end()
	if !ends(giveUp, r.background.Wait) {
		return errHanging
	}
	if found, _ := r.again.take(); found != nil {
		found.release()
	}
	if l := r.events; l != nil {
		r.events = nil
		if err := l.close(); err != nil {
			r.hanging = true
		}
	}
	r.past.xids.saveSoon()
	if r.hanging {
		return errHanging
	}
	for _, h := range r.handles {
		h.release()
	}
	if !r.initialised {
		return nil
	}
	r.initialised = false
	if ret := r.lib.Shutdown(); ret != nvml.SUCCESS {
		return fmt.Errorf("nvml: shutdown: %s", ret.Error())
	}
	return nil
}
