//go:build cgo

package nvml

import (
	"cmp"
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// retry says when the library is to be initialised anew, which alone finds devices that came
// later, and devices that were lost and are back.
type retry struct {
	missing bool          // the last listing lacked a device that was there before
	listed  int           // devices of the last listing
	first   time.Duration // between the first two tries; 0: firstRenewal
	next    time.Time
	pause   time.Duration
}

// Between two tries, doubled while a device stays away: the others wait meanwhile.
const (
	firstRenewal = 30 * time.Second
	lastRenewal  = time.Hour
	// letIn is how long reads under way may take before trying is put off: a device that hangs must
	// not hold up the others.
	letIn = 500 * time.Millisecond
)

// why says what there is to gain, "" when there is nothing.
func (r *reader) why() string {
	if r.again.missing {
		return "a device is missing"
	}
	for _, h := range r.handles {
		if h.lost.Load() {
			return "a device is lost"
		}
	}
	if r.onBus != nil && r.onBus() > r.again.listed && len(r.handles) > 0 {
		return "there is another device on the bus"
	}
	return ""
}

// renew initialises the library anew where that may bring a device back. Reads wait meanwhile;
// where one hangs, it is put off.
func (r *reader) renew() error {
	why, now := r.why(), r.now()
	if why == "" {
		r.again.pause = 0
		return nil
	}
	if r.again.pause == 0 { // the device may be back by itself
		r.again.pause, r.again.next = cmp.Or(r.again.first, firstRenewal), now
		return nil
	}
	if now.Before(r.again.next) {
		return nil
	}
	r.again.next = now.Add(r.again.pause)
	r.again.pause = min(2*r.again.pause, lastRenewal)
	if !r.gate.close(letIn) {
		r.log.Debug("not initialised anew: a device hangs", "why", why)
		return nil
	}
	defer r.gate.open()
	r.log.Info("initialising anew", "why", why)
	if err := r.shut(); err != nil {
		return err
	}
	return r.init()
}

// shut frees all that is held of the driver and then lets go of it: the listener first, which
// waits in the library. No read is under way.
func (r *reader) shut() error {
	if r.hanging {
		return errHanging
	}
	if l := r.events; l != nil {
		r.events = nil
		if err := l.close(); err != nil {
			r.hanging = true
			return err
		}
	}
	r.past.xids.save()
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

// Close lets go of the driver.
func (r *reader) Close() error {
	close(r.stop)
	if !ends(giveUp, r.background.Wait) {
		return errHanging
	}
	return r.shut()
}

// ends says whether something ended in time.
func ends(patience time.Duration, wait func()) bool {
	done := make(chan struct{})
	go func() { wait(); close(done) }()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
