//go:build cgo

package nvml

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

const (
	// maxRefusals is after how many refusals in a row a call is no longer made, where one alone proves
	// nothing: some drivers answer INVALID_ARGUMENT for what their generation lacks, and a device that is
	// being reset answers NOT_SUPPORTED to calls it has answered before.
	maxRefusals = 3
	// forgetEvery is how often a device is asked again for everything it has refused.
	forgetEvery = 10 * time.Minute
	// firstRetry is after how long the calls that used to succeed are made again; doubled up to forgetEvery.
	firstRetry = time.Minute
)

// answer is what a device has returned so far for one call, or for one numbered field.
type answer struct {
	refusals uint8 // in a row
	answered bool  // it has succeeded in the device's present mode
	lapsed   bool  // it has succeeded before and is refused now
	off      bool  // the call is not made until retry or forget
}

// answers are those of one device.
type answers struct {
	absent *[questions]bool
	of     [questions][variants]answer
}

// forget asks again for everything that was refused.
func (a *answers) forget() {
	a.each((*answer).forget)
}

// retry asks again for what used to succeed.
func (a *answers) retry() {
	a.each((*answer).retry)
}

func (a *answers) each(f func(*answer)) {
	for q := range a.of {
		for v := range a.of[q] {
			f(&a.of[q][v])
		}
	}
}

func (a *answer) forget() { a.off, a.refusals = false, 0 }

// retry allows one more call: a further refusal ends it at once.
func (a *answer) retry() {
	if a.off && a.lapsed {
		a.off, a.refusals = false, maxRefusals-1
	}
}

// why returns the reason a return code gives for there being no value, nil when there is one. A call that
// the device refuses is not made again: after one NOT_SUPPORTED when it has never succeeded, otherwise
// after maxRefusals refusals in a row.
func (p *pass) why(a *answer, ret nvml.Return) *metric.Reason {
	why, whole := reason(ret)
	if whole {
		p.down = why
	}
	if why == metric.Denied {
		p.h.deny()
	}
	if why != metric.Unsupported && ret != nvml.ERROR_INVALID_ARGUMENT {
		a.refusals = 0
		if why == nil {
			a.answered = true
			p.h.resume(a)
		}
		return why
	}
	a.refusals++
	if a.refusals < maxRefusals && (a.answered || ret == nvml.ERROR_INVALID_ARGUMENT) {
		return why
	}
	a.off = true
	if a.answered {
		p.h.lapse(a)
	}
	return metric.Unsupported
}

// lapse notes that a device refuses a call that it has answered before, and logs the first such call.
func (h *handle) lapse(a *answer) {
	if !a.lapsed {
		a.lapsed = true
		if h.lapsed++; h.lapsed == 1 {
			h.retryPause = firstRetry
			h.log.Warn("the driver refuses readings it has given before; they are absent until it gives them again", "retry_in", h.retryPause)
		}
	}
	if h.retryAt.IsZero() {
		h.retryAt = h.reader.now().Add(h.retryPause)
		h.retryPause = min(2*h.retryPause, forgetEvery)
	}
}

// resume notes that a refused call succeeds again.
func (h *handle) resume(a *answer) {
	if !a.lapsed {
		return
	}
	a.lapsed = false
	if h.lapsed--; h.lapsed == 0 {
		h.log.Info("the driver gives the refused readings again")
	}
}

// retryRefused makes the calls again that used to succeed, once their pause has passed.
func (h *handle) retryRefused(now time.Time) {
	if h.retryAt.IsZero() || now.Before(h.retryAt) {
		return
	}
	h.retryAt = time.Time{}
	h.answers.retry()
	h.fields.retry()
	h.links.fields.retry()
}

// forget asks again for everything that was refused.
func (h *handle) forget(now time.Time) {
	h.forgot = now
	h.answers.forget()
	h.fields.forget()
	h.links.forget()
	h.fixed = fixed{}
	if h.reader.chosen.groups["throttle"] {
		h.reasons = supportedReasons(h.settled.dev, h.reader.lib)
	}
}

// forgetMode forgets what the device supports: another mode, or a device handed out anew, supports other
// calls, and a refusal is no change then.
func (h *handle) forgetMode(now time.Time) {
	h.answers.of = [questions][variants]answer{}
	h.fields.forgetMode()
	h.links.fields.forgetMode()
	h.lapsed, h.retryAt = 0, time.Time{}
	h.forget(now)
}
