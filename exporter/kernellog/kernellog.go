// Package kernellog reads what NVIDIA's driver says in the kernel's log: the XIDs the driver does
// not tell those who ask it, because it was not asked in time or the device is gone.
package kernellog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Event is an XID.
type Event struct {
	At   time.Time
	PCI  string // as telemetry.Identity has it: 0000:83:00.0
	UUID string // of the device there, if the log has said it
	Code uint64
	Text string // what the driver said beside it
}

// Cursor is how far a log was read.
type Cursor struct {
	Boot     string // which start of the machine the log is of, empty when that is not known
	Sequence uint64 // of the last record read
}

// Config says which log is read, and from where on.
type Config struct {
	Path    string // /dev/kmsg, or a file with such records, which is followed as it grows
	Proc    string // where the host's /proc is mounted
	From    Cursor // how far an earlier run came; the zero Cursor: there was none
	History bool   // without a cursor of this boot, read what it said so far, and not only what comes
}

// Faults are counts of what could not be told.
type Faults struct {
	Overwritten uint64 // records gone before they were read
	Unreadable  uint64 // that are not of the form
}

const (
	// hold is how far apart, at the most, the two lines are in which the driver says one thing.
	hold = 2 * time.Second
	// maxHeld is how many events wait for such a second line; then the first is let go.
	maxHeld = 1024
	// maxDevices is far above what a machine has.
	maxDevices = 64
)

// Log is an opened log.
type Log struct {
	lines  lines
	boot   string
	now    func() time.Time
	faults Faults
	closed atomic.Bool

	known bool      // the sequence is
	next  uint64    // sequence of the record that comes next
	ended uint64    // 1 more than the highest sequence met; 0: none
	start time.Time // of the clock of the records
	fresh bool      // the next record was waited for

	queue []pending            // in the order of the log
	uuids map[string]string    // by address
	gone  map[string]time.Time // when a device was last said to have fallen off the bus, by address
}

// pending is an event not delivered yet.
type pending struct {
	Event
	sequence uint64
	numbered bool // false: the line that says so without the number, which may still come
}

// lines is where a log comes from.
type lines interface {
	// next returns the next line, which is good until next is called again; nil when there is none now.
	next() ([]byte, error)
	// wait returns when there may be a line, at the time if there is one, or when the context ends.
	wait(ctx context.Context, until time.Time) error
	skip() error // to the end
	io.Closer
}

// Open opens a log. Where the machine's boot can not be told from another, nothing is read but
// what comes.
func Open(c Config) (*Log, error) {
	info, err := os.Stat(c.Path) // first, for opening a terminal or a pipe has consequences
	if err != nil {
		return nil, fmt.Errorf("kernel log: %w", err)
	}
	l := &Log{now: time.Now, boot: readBoot(c.Proc), uuids: map[string]string{}, gone: map[string]time.Time{}}
	switch {
	case info.Mode().IsRegular():
		l.lines, err = openFile(c.Path)
	case isDevice(info):
		l.lines, err = openDevice(c.Path)
	default:
		err = fmt.Errorf("%s is not the kernel's log", c.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("kernel log: %w", err)
	}
	l.start = l.now().Add(-running())
	switch {
	case l.boot != "" && c.From.Boot == l.boot && c.From.Sequence <= lastSequence:
		l.known, l.next = true, c.From.Sequence+1
	case l.boot == "" || !c.History || c.From.Boot == l.boot:
		if err := l.lines.skip(); err != nil {
			return nil, fmt.Errorf("kernel log: %w", errors.Join(err, l.Close()))
		}
	}
	return l, nil
}

// readBoot returns what tells this start of the machine from all others.
func readBoot(proc string) string {
	f, err := os.Open(filepath.Join(proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was only read
	raw, err := io.ReadAll(io.LimitReader(f, 64))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// Close ends reading, and Run if it is waiting.
func (l *Log) Close() error {
	l.closed.Store(true)
	return l.lines.Close()
}

// Faults are those so far. It is to be called where Run delivers.
func (l *Log) Faults() Faults { return l.faults }

// Run reads until the context ends or the log can not be read any more. Whenever it has come to
// the end of what there is, it delivers the events since the last time, of which there may be none,
// and how far it has read, the zero Cursor while it has read nothing: a Log opened with that cursor
// delivers what comes after them.
func (l *Log) Run(ctx context.Context, deliver func([]Event, Cursor)) error {
	for ctx.Err() == nil {
		line, err := l.lines.next()
		if err != nil {
			return l.fault(err)
		}
		if line != nil {
			l.take(line)
			if len(l.queue) < maxHeld {
				continue
			}
		}
		if line == nil {
			l.behind()
		}
		due := l.deliver(deliver)
		if line == nil {
			l.fresh = true
			if err := l.lines.wait(ctx, due); err != nil {
				return l.fault(err)
			}
		}
	}
	return nil
}

// fault is why reading ended; that it was closed is none.
func (l *Log) fault(err error) error {
	if l.closed.Load() {
		return nil
	}
	return fmt.Errorf("kernel log: %w", err)
}

// take reads one line.
func (l *Log) take(line []byte) {
	if len(line) > 0 && line[0] == ' ' {
		return // goes with the record before, and says what we do not need
	}
	r, ok := parseRecord(line)
	if !ok {
		l.faults.Unreadable++
		return
	}
	l.ended = max(l.ended, r.sequence+1)
	if l.known && r.sequence < l.next {
		return // read in an earlier run, or in a file that was written anew
	}
	if l.known {
		l.faults.Overwritten += r.sequence - l.next
	}
	l.known, l.next = true, r.sequence+1
	at := l.when(r)
	if !r.kernel {
		return
	}
	s, ok := parseText(r.text)
	switch {
	case !ok:
	case s.uuid != "":
		keep(l.uuids, s.pci, s.uuid)
	case s.code != 0:
		l.hear(pending{Event{at, s.pci, l.uuids[s.pci], s.code, strings.ToValidUTF8(s.text, "\uFFFD")}, r.sequence, true})
	default:
		l.hear(pending{Event{At: at, PCI: s.pci, UUID: l.uuids[s.pci], Code: fallen}, r.sequence, false})
	}
}

// behind corrects a cursor that is beyond the end of the log: no run before can have read that far, and
// what comes is new.
func (l *Log) behind() {
	if l.known && l.ended > 0 && l.ended < l.next {
		l.next = l.ended
	}
}

// keep notes what was said of an address, forgetting all others rather than growing without end.
func keep[T any](of map[string]T, pci string, what T) {
	if _, known := of[pci]; !known && len(of) >= maxDevices {
		clear(of)
	}
	of[pci] = what
}

// when is the wall time of a record. The log's clock runs apart from ours, in weeks by many
// seconds; so a record that was waited for is of now, and those that came with it of as much later
// as their clock says.
func (l *Log) when(r record) time.Time {
	now := l.now()
	if l.fresh {
		l.fresh, l.start = false, now.Add(-r.since)
	}
	if at := l.start.Add(r.since); at.Before(now) {
		return at
	}
	return now
}

// hear queues an event. Of the two lines that say that a device has fallen off the bus, in either
// order, the one with the number is kept.
func (l *Log) hear(e pending) {
	if e.Code == fallen {
		last, said := l.gone[e.PCI]
		if !e.numbered && said && near(last, e.At) {
			return
		}
		keep(l.gone, e.PCI, e.At)
		if e.numbered {
			l.queue = slices.DeleteFunc(l.queue, func(p pending) bool {
				return !p.numbered && p.PCI == e.PCI && near(p.At, e.At)
			})
		}
	}
	l.queue = append(l.queue, e)
}

func near(a, b time.Time) bool { return a.Sub(b).Abs() <= hold }

// deliver hands out what need not wait for a second line. It returns when the next is due, the zero
// time when none waits.
func (l *Log) deliver(to func([]Event, Cursor)) (due time.Time) {
	now, events := l.now(), []Event(nil)
	for _, p := range l.queue {
		if !p.numbered && now.Sub(p.At) <= hold && len(l.queue)-len(events) < maxHeld {
			due = p.At.Add(hold + time.Millisecond)
			break
		}
		events = append(events, p.Event)
	}
	l.queue = slices.Delete(l.queue, 0, len(events))
	var c Cursor
	if len(l.queue) > 0 {
		c = Cursor{l.boot, max(l.queue[0].sequence, 1) - 1}
	} else if l.known {
		c = Cursor{l.boot, max(l.next, 1) - 1}
	}
	to(events, c)
	return due
}
