//go:build cgo

package nvml

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

const (
	// together is how far apart the driver's event and the line of the kernel's log are, at the
	// most, that tell of one XID.
	together = 2 * time.Second
	// maxUnpaired is how many XIDs of a code, told of by one of both alone, are kept for the other.
	maxUnpaired = 64
	// maxUnknown is how many codes of a device have series of their own that the catalogue does not have. Any
	// number may come from the kernel's log; all further ones are counted as otherXID.
	maxUnknown = 64
	// otherXID is the code of the XIDs beyond maxUnknown. The driver has no XID 0.
	otherXID = 0
)

// teller is who tells of an XID.
type teller int

const (
	driver teller = iota
	kernel        // its log
)

// xids counts the XIDs of one device since the exporter started: each once, though the driver and
// the kernel's log tell of it, and all of them, though the driver tells only the last of several.
type xids struct {
	book *xidBook

	mu        sync.Mutex
	uuid, pci string    // the uuid is empty while no device is known at the address
	codes     []xidCode // rising
	unknown   int       // of them, those that the catalogue does not have
	asked     [len(telemetry.XID{}.Events)]uint64

	// What read returns. It is replaced when it changes, and never changed: snapshots hold it.
	stale  bool
	shown  time.Time // first reading, in which the actions were 0; zero: there was none
	due    time.Time // when a count that is held at 0 is to be shown; zero: none is held
	answer telemetry.XID
}

// xidCode is one code of a device.
type xidCode struct {
	code     uint64
	labels   *metric.Labels
	count    uint64
	last     time.Time
	shown    time.Time      // first reading that had the code, as 0; zero: there was none
	unpaired [2][]time.Time // rising, by teller: what the other has not told of
}

func newXIDs(book *xidBook, uuid, pci string) *xids {
	return &xids{book: book, uuid: uuid, pci: pci, stale: true}
}

// add counts an XID the driver tells of, unless the kernel's log did.
func (x *xids) add(code uint64, at time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.note(driver, code, at, "") {
		x.book.touch() // what has no pair yet may have it in the part of the log that the next run reads
	}
}

// heard counts an XID the kernel's log tells of, unless the driver did. The rest of the line is for
// people.
func (x *xids) heard(code uint64, at time.Time, rest string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.note(kernel, code, at, rest)
}

// expect leaves out an XID when the log tells of it: an earlier run counted it.
func (x *xids) expect(code uint64, at time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.at(code).keep(driver, at)
}

// note says whether an XID is new.
func (x *xids) note(who teller, code uint64, at time.Time, rest string) bool {
	c := x.at(code)
	if c.pair(who, at) {
		return false
	}
	c.keep(who, at)
	if c.count == 0 {
		x.say(code, rest)
	}
	x.count(c, 1, at)
	return true
}

// at returns the entry of a code, which is made when there is none: of one that the catalogue does not have,
// beyond maxUnknown, that of otherXID.
func (x *xids) at(code uint64) *xidCode {
	i, found := x.find(code)
	if !found && code != otherXID && telemetry.XIDMeaningOf(code).Brief == "" {
		if x.unknown < maxUnknown {
			x.unknown++
		} else {
			code = otherXID
			i, found = x.find(code)
		}
	}
	if !found {
		labels := telemetry.XIDErrorsAttributes{XID: int64(code)}.Labels()
		x.codes = slices.Insert(x.codes, i, xidCode{code: code, labels: labels})
	}
	return &x.codes[i]
}

// find returns where the entry of a code is, or belongs.
func (x *xids) find(code uint64) (i int, found bool) {
	return slices.BinarySearchFunc(x.codes, code, func(c xidCode, code uint64) int { return cmp.Compare(c.code, code) })
}

// pair takes the other teller's word on the same XID out, and says whether there was one. Each
// teller tells in the order of time, so that what is too old now has no pair to come.
func (c *xidCode) pair(who teller, at time.Time) bool {
	other := &c.unpaired[1-who]
	*other = slices.DeleteFunc(*other, func(t time.Time) bool { return at.Sub(t) > together })
	if len(*other) == 0 || (*other)[0].Sub(at) > together {
		return false
	}
	*other = slices.Delete(*other, 0, 1)
	return true
}

// keep notes an XID for the other teller. Without one, the oldest are forgotten.
func (c *xidCode) keep(who teller, at time.Time) {
	own := append(c.unpaired[who], at)
	slices.SortFunc(own, time.Time.Compare)
	c.unpaired[who] = own[max(0, len(own)-maxUnpaired):]
}

func (x *xids) count(c *xidCode, n uint64, last time.Time) {
	c.count += n
	if last.After(c.last) {
		c.last = last
	}
	x.asked[telemetry.XIDActionOf(c.code)] += n
	x.stale = true
}

// say logs a code that is new on the device: one line a code, not one an XID.
func (x *xids) say(code uint64, rest string) {
	m := telemetry.XIDMeaningOf(code)
	level := slog.LevelWarn
	if m.Severity == "info" {
		level = slog.LevelInfo
	}
	known := []slog.Attr{
		slog.String("uuid", x.uuid), slog.String("pci", x.pci), slog.Uint64("xid", code),
		slog.String("name", m.Mnemonic), slog.String("meaning", m.Brief), slog.String("action", m.Action.String()), slog.String("said", rest),
	}
	known = slices.DeleteFunc(known, func(a slog.Attr) bool { return a.Value.String() == "" })
	x.book.log.LogAttrs(context.Background(), level, "XID of a new code", known...)
}

// adopt takes over what was counted at an address before it was known whose it is, and says whether
// there was anything.
func (x *xids) adopt(stranger *xids) (any bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range stranger.codes {
		c := x.at(s.code)
		if s.count > 0 {
			x.count(c, s.count, s.last)
			any = true
		}
		for who, times := range s.unpaired {
			for _, at := range times {
				c.keep(teller(who), at)
			}
		}
	}
	return any
}

// read puts the counts into a reading, as empty lists and not nil when the driver or the log reports the
// device's XIDs and there were none. A count is 0 for the book's hold from the first reading that has it,
// so that increase() sees the step at every scraper: the actions from the device's first reading, a code
// from its own.
func (x *xids) read(fromDriver bool, out *telemetry.XID) {
	if !fromDriver && !x.book.reading.Load() {
		return
	}
	now := x.book.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stale || !x.due.IsZero() && !now.Before(x.due) {
		x.renew(now)
	}
	*out = x.answer
}

// held reports whether a count first shown then is still 0, and notes when that ends.
func (x *xids) held(shown *time.Time, now time.Time) bool {
	if shown.IsZero() {
		*shown = now
	} else if now.Sub(*shown) >= x.book.hold {
		return false
	}
	if end := shown.Add(x.book.hold); x.due.IsZero() || end.Before(x.due) {
		x.due = end
	}
	return true
}

func (x *xids) renew(now time.Time) {
	x.stale, x.due = false, time.Time{}
	a := telemetry.XID{Errors: []metric.Keyed{}, LastSeenTimestamp: []metric.Keyed{}}
	for i := range x.codes {
		c := &x.codes[i]
		if c.count == 0 {
			continue // an earlier run counted it
		}
		count, last := metric.Keyed{Labels: c.labels}, metric.Keyed{Labels: c.labels}
		last.Value.Set(float64(c.last.UnixMilli()) / 1000)
		count.Value.Set(0)
		if !x.held(&c.shown, now) {
			count.Value.Set(float64(c.count))
		}
		a.Errors, a.LastSeenTimestamp = append(a.Errors, count), append(a.LastSeenTimestamp, last)
	}
	held := x.held(&x.shown, now)
	for i := range a.Events {
		a.Events[i].Set(0)
		if !held {
			a.Events[i].Set(float64(x.asked[i]))
		}
	}
	x.answer = a
}
