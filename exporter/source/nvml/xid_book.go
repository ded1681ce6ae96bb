//go:build cgo

package nvml

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gpumeter/gpumeter/exporter/kernellog"
	store "github.com/gpumeter/gpumeter/exporter/state" // state is a unit here
)

const (
	// maxStrangers is how many addresses are kept at the most at which there is no device we know.
	maxStrangers = 64
	// betweenSaves keeps a storm of XIDs from becoming one of writing.
	betweenSaves = 200 * time.Millisecond
	// betweenTries is after how long a log is tried again that could not be read.
	betweenTries = time.Minute
	// diskPatience is how long opening and closing the driver wait for the state directory and the log.
	diskPatience = 500 * time.Millisecond
	// fact is the name under which the next run finds how far the log was read.
	fact = "kernellog"
)

// xidBook holds the XIDs of all devices the source has met, and brings those that the kernel's log
// tells of to their devices. It lives as long as the source: what happens while the driver is closed,
// or to a device it has lost, is counted like all else.
type xidBook struct {
	log   *slog.Logger
	from  kernellog.Config // the path is empty: no log is read
	store store.Store
	hold  time.Duration // a count is 0 for so long from the first reading that has it
	now   func() time.Time
	dirty chan struct{} // what is to be kept has changed

	opened chan *kernellog.Log // from start to run; nil: the log could not be opened yet

	reading atomic.Bool   // the log
	saving  chan struct{} // holds an entry while a save runs: one at a time
	unsaved bool          // the last save failed; the running save alone touches it

	mu        sync.Mutex       // over what follows; never held while something is read or written
	of        map[string]*xids // by UUID
	at        map[string]*xids // by PCI address
	strangers int              // of those at an address, how many are of no device we know
	crowded   bool             // it was said that there are too many
	started   bool
	unread    string // why the log can not be read
	cursor    kernellog.Cursor
	missed    kernellog.Faults
}

// kept is what one run leaves to the next.
type kept struct {
	Cursor kernellog.Cursor
	Told   []toldXID // by the driver, and not yet by the log
}

type toldXID struct {
	PCI  string
	Code uint64
	At   time.Time
}

func newXIDBook(cfg Config) *xidBook {
	if cfg.now == nil {
		cfg.now = time.Now
	}
	return &xidBook{
		log: cfg.Logger, store: cfg.State, hold: cfg.Hold, now: cfg.now, dirty: make(chan struct{}, 1), saving: make(chan struct{}, 1), opened: make(chan *kernellog.Log, 1),
		from: kernellog.Config{Path: cfg.KernelLog, Proc: cfg.Proc, History: cfg.State.Keeps()},
		of:   map[string]*xids{}, at: map[string]*xids{},
	}
}

func (b *xidBook) touch() {
	select {
	case b.dirty <- struct{}{}:
	default: // it is known
	}
}

// device returns the XIDs of a device.
func (b *xidBook) device(uuid string) *xids {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[uuid] == nil {
		b.of[uuid] = newXIDs(b, uuid, "")
	}
	return b.of[uuid]
}

// place notes at which address a device is. It takes over what was heard from there before.
func (b *xidBook) place(uuid, pci string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.of[uuid]
	before := b.at[pci]
	if x == nil || pci == "" || before == x {
		return
	}
	if old := x.move(pci); b.at[old] == x {
		delete(b.at, old)
	}
	b.at[pci] = x
	if before != nil && before.uuid == "" {
		b.strangers--
		if x.adopt(before) {
			b.log.Info("the device is known whose XIDs were heard before", "pci", pci, "uuid", uuid)
		}
	}
}

// move returns where the device was.
func (x *xids) move(pci string) (old string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old, x.pci = x.pci, pci
	return old
}

// whose returns the XIDs of the device the log speaks of, nil when there are too many of which
// nothing is known. What the log calls a device counts more than where it says it is.
func (b *xidBook) whose(uuid, pci string) *xids {
	if x := b.of[uuid]; x != nil {
		return x
	}
	if x := b.at[pci]; x != nil {
		return x
	}
	if b.strangers >= maxStrangers {
		if !b.crowded {
			b.crowded = true
			b.log.Warn("XIDs of more unknown devices than are kept are left out", "pci", pci, "kept", maxStrangers)
		}
		return nil
	}
	b.strangers++
	b.at[pci] = newXIDs(b, "", pci)
	return b.at[pci]
}

// heard takes what the log delivers.
func (b *xidBook) heard(events []kernellog.Event, c kernellog.Cursor, f kernellog.Faults) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range events {
		if x := b.whose(e.UUID, e.PCI); x != nil {
			x.heard(e.Code, e.At, e.Text)
		}
	}
	b.cursor = c
	if len(events) > 0 {
		b.touch()
	}
	if f.Overwritten > 0 && b.missed.Overwritten == 0 {
		b.log.Warn("a part of the kernel's log was overwritten before it was read; XIDs may be missing", "records", f.Overwritten)
	}
	if f.Unreadable > 0 && b.missed.Unreadable == 0 {
		b.log.Warn("what the kernel's log says is not all of the known form", "records", f.Unreadable)
	}
	b.missed = f
}

// start opens the log for run, once in the life of the source, so that the first reading already knows
// that the log is read. It must not be called before the driver is known to be there: a machine without one
// has nothing to say of its devices.
func (b *xidBook) start() {
	b.mu.Lock()
	again := b.started || b.from.Path == ""
	b.started = true
	b.mu.Unlock()
	if again {
		return
	}
	if !ends(diskPatience, func() {
		b.load()
		b.opened <- b.open()
	}) {
		b.log.Warn("the driver is opened before the kernel's log: the state directory or the log does not respond", "for", diskPatience)
	}
}

// run reads the log from start until the context ends, also while the devices are released.
func (b *xidBook) run(ctx context.Context) {
	var first *kernellog.Log
	select {
	case first = <-b.opened:
	case <-ctx.Done():
		return
	}
	var both sync.WaitGroup
	both.Go(func() { b.keepReading(ctx, first) })
	both.Go(func() { b.keepSaving(ctx) })
	both.Wait()
}

// keepReading reads, and tries again when that fails.
func (b *xidBook) keepReading(ctx context.Context, l *kernellog.Log) {
	for {
		if l != nil {
			err := l.Run(ctx, func(events []kernellog.Event, c kernellog.Cursor) { b.heard(events, c, l.Faults()) })
			b.close(l, err)
		}
		t := time.NewTimer(betweenTries)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		l = b.open()
	}
}

// open opens the log where it was left. It returns nil when it can not, and says so once.
func (b *xidBook) open() *kernellog.Log {
	b.mu.Lock()
	from := b.from
	from.From = b.cursor
	b.mu.Unlock()
	l, err := kernellog.Open(from)
	b.reading.Store(err == nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.unread, b.missed = "", kernellog.Faults{}
		b.log.Info("XIDs are read from the kernel's log too", "path", from.Path)
	} else if b.unread != err.Error() {
		b.unread = err.Error()
		b.log.Info("XIDs come from the driver alone", "err", err, "needs", needs(err))
	}
	return l
}

// needs says what it takes to read the log.
func needs(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "CAP_SYSLOG, where kernel.dmesg_restrict is 1, and in a container the right to read the device"
	case errors.Is(err, fs.ErrNotExist):
		return "the file; in a container, the host's /dev/kmsg"
	}
	return "another file"
}

func (b *xidBook) close(l *kernellog.Log, err error) {
	b.reading.Store(false)
	if err = errors.Join(err, l.Close()); err != nil {
		b.log.Warn("the kernel's log is no longer read", "err", err)
	}
}

// load finds what the run before has left.
func (b *xidBook) load() {
	var k kept
	if _, err := b.store.Load(fact, &k); err != nil {
		b.log.Warn("how far the kernel's log was read is not known; it is read from the machine's start", "err", err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cursor = k.Cursor
	for _, t := range k.Told {
		if x := b.whose("", t.PCI); x != nil {
			x.expect(t.Code, t.At)
		}
	}
}

// keepSaving saves what changes, soon.
func (b *xidBook) keepSaving(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			b.save()
			return
		case <-b.dirty:
		}
		b.save()
		t := time.NewTimer(betweenSaves)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// saveSoon saves, and waits for a disk that hangs no longer than diskPatience.
func (b *xidBook) saveSoon() { ends(diskPatience, b.save) }

// save keeps how far the log was read, and what of the rest was counted already. No lock is held while it
// writes.
func (b *xidBook) save() {
	b.saving <- struct{}{}
	defer func() { <-b.saving }()
	k := b.keep()
	if k.Cursor.Boot == "" {
		return // no log was read, so there is no place in it
	}
	err := b.store.Save(fact, k)
	if err != nil && !b.unsaved {
		b.log.Warn("how far the kernel's log was read is not kept", "err", err)
	}
	b.unsaved = err != nil
}

// keep copies what is saved.
func (b *xidBook) keep() kept {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := kept{Cursor: b.cursor}
	for pci, x := range b.at {
		k.Told = append(k.Told, x.unheard(pci)...)
	}
	return k
}

// unheard is what the driver told of lately, and the log has not.
func (x *xids) unheard(pci string) []toldXID {
	const late = 10 * time.Second // after which the log will not
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []toldXID
	for _, c := range x.codes {
		for _, at := range c.unpaired[driver] {
			if time.Since(at) < late {
				out = append(out, toldXID{pci, c.code, at})
			}
		}
	}
	return out
}
