package process

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Locator finds out where processes belong, through the host's /proc. It may be used by several at once.
type Locator struct {
	Proc string // where it is mounted
	Now  func() time.Time

	readlink func(string) (string, error) // of a test

	mu     sync.Mutex
	known  map[int64]*Process
	counts map[string]uint64
	names  names
	own    sync.Once
	around []string // the containers that this process runs in

	locating map[int64]*reading[Process] // that have not answered yet
}

// Process is what the host's /proc tells of one.
type Process struct {
	Place
	Command string // as the kernel has it, 15 bytes at most; the process can change it
	// Login is who works where no pod, job or container says: the user's name, or his number where the
	// host's /etc/passwd has none or may not be read. It is empty for root's own processes, and for those
	// in a unit of the system.
	Login string
	// MPS reports whether the process is MPS' server or control daemon, which work for their clients.
	MPS bool

	start  uint64 // when it began, in ticks since the machine started: a PID is used again
	looked time.Time
}

const (
	// again is after how long a place is looked up anew: Slurm moves a process after it has started it.
	again = 30 * time.Second
	// mostKnown is how many processes are remembered; those on the GPUs of any node are fewer.
	mostKnown = 8192
)

// Why a process could not be placed, in errors and in Counts.
var (
	// ErrGone is that a process has ended, or never was in this /proc.
	ErrGone = errors.New("no such process")
	// ErrHidden is that this /proc shows nobody else's processes (hidepid).
	ErrHidden = errors.New("other users' processes are hidden")
	// ErrDenied is that what it tells may not be read.
	ErrDenied = errors.New("may not be read")
	// ErrFiles is that this process has too many open files.
	ErrFiles = errors.New("too many open files")
	// ErrHanging is that what it tells does not come.
	ErrHanging = errors.New("does not answer")
	// ErrMalformed is that what it tells is not as the kernel writes it.
	ErrMalformed = errors.New("not as the kernel writes it")
)

// reasons are the words of Counts for the errors.
var reasons = [...]struct {
	err  error
	word string
}{{ErrHidden, "hidden"}, {ErrGone, "gone"}, {ErrDenied, "denied"}, {ErrFiles, "too_many_files"}, {ErrHanging, "hanging"}, {ErrMalformed, "malformed"}}

// Locate returns what is known of a process of the host. Its errors are those above.
func (l *Locator) Locate(pid int64) (Process, error) {
	p, err := l.within(pid)
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			l.count(r.word)
			break
		}
	}
	return p, err
}

// Counts returns how often a process could not be located, by reason: gone, hidden, denied,
// too_many_files, hanging or malformed. A process that ends after the driver listed it is gone, and no fault.
func (l *Locator) Counts() map[string]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]uint64{}
	for _, r := range reasons {
		out[r.word] = 0
	}
	maps.Copy(out, l.counts)
	return out
}

func (l *Locator) count(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]uint64{}
	}
	l.counts[reason]++
}

// patience is for how long what one process tells is waited for: a kernel that is in trouble may let its
// readers wait for ever, and a scrape must not. Of several that hang each is waited for a little less.
const patience = 250 * time.Millisecond

// within locates a process, and waits no longer than is sensible.
func (l *Locator) within(pid int64) (Process, error) {
	l.mu.Lock()
	r := l.locating[pid]
	if r == nil { // while one waits, no other is begun
		r = begin(func() (Process, error) {
			p, err := l.locate(pid)
			l.mu.Lock()
			delete(l.locating, pid)
			l.mu.Unlock()
			return p, err
		})
		if l.locating == nil {
			l.locating = map[int64]*reading[Process]{}
		}
		l.locating[pid] = r
	}
	wait := patience / time.Duration(len(l.locating))
	l.mu.Unlock()
	p, err := r.within(wait)
	if errors.Is(err, errHangs) {
		return Process{}, fmt.Errorf("process %d: %w", pid, ErrHanging)
	}
	return p, err
}

func (l *Locator) locate(pid int64) (Process, error) {
	start, command, err := l.stat(pid)
	if err != nil {
		return Process{}, err
	}
	now := l.now()
	l.mu.Lock()
	p := l.known[pid]
	l.mu.Unlock()
	if p != nil && p.start == start && p.Command == command {
		if age := now.Sub(p.looked); age >= 0 && age < again { // below 0 the clock was set back
			return *p, nil
		}
	}
	p, err = l.look(pid, start, command, now)
	if err != nil {
		return Process{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= mostKnown {
		l.known = map[int64]*Process{}
	}
	l.known[pid] = p
	return *p, nil
}

// look reads all of a process. Its number may be given to another one meanwhile, so that what was read
// is of both: then it is read again.
func (l *Locator) look(pid int64, start uint64, command string, now time.Time) (*Process, error) {
	for range 3 {
		text, err := l.read(pid, "cgroup")
		if err != nil {
			return nil, err
		}
		p := &Process{Place: Parse(string(text), l.homes()), Command: command, start: start, looked: now}
		if !p.outranksUnit() && (p.Unit == "" || p.User != "") {
			p.Login = l.login(pid, p.User, now)
		}
		p.MPS = l.isMPS(pid, p)
		began, called, err := l.stat(pid)
		if err != nil {
			return nil, err
		}
		if began == start {
			return p, nil
		}
		start, command = began, called
	}
	return nil, gone(pid)
}

// homes returns the containers that this process runs in. It reads them once.
func (l *Locator) homes() []string {
	l.own.Do(func() {
		if text, err := os.ReadFile(filepath.Join(l.Proc, "self/cgroup")); err == nil {
			l.around = Homes(string(text))
		}
	})
	return l.around
}

func (l *Locator) now() time.Time {
	if l.Now != nil {
		return l.Now()
	}
	return time.Now()
}
