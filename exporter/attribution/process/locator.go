package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Locator finds out where processes belong, through the host's /proc.
type Locator struct {
	Proc string // where it is mounted
	Now  func() time.Time

	mu    sync.Mutex
	known map[int64]*Process
}

// Process is what the host's /proc tells of one.
type Process struct {
	Place
	Command string
	start   uint64 // when it began, in ticks since the machine started: a PID is used again
	looked  time.Time
}

const (
	// again is after how long a place is looked up anew: Slurm moves a process after it has started it.
	again = 30 * time.Second
	// mostKnown is how many processes are remembered; those on the GPUs of any node are fewer.
	mostKnown = 8192
	// maxRead is far above what these files hold.
	maxRead = 64 << 10
)

// ErrGone is that a process has ended, or is not seen through this /proc.
var ErrGone = errors.New("no such process")

// Locate returns what is known of a process of the host.
func (l *Locator) Locate(pid int64) (Process, error) {
	start, command, err := l.stat(pid)
	if err != nil {
		return Process{}, err
	}
	now := l.now()
	l.mu.Lock()
	p := l.known[pid]
	l.mu.Unlock()
	if p != nil && p.start == start && now.Sub(p.looked) < again {
		return *p, nil
	}
	text, err := l.read(pid, "cgroup")
	if err != nil {
		return Process{}, err
	}
	p = &Process{Place: Parse(string(text)), Command: command, start: start, looked: now}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= mostKnown {
		l.known = map[int64]*Process{}
	}
	l.known[pid] = p
	return *p, nil
}

func (l *Locator) now() time.Time {
	if l.Now != nil {
		return l.Now()
	}
	return time.Now()
}

// stat reads when a process began, and its command. The command stands in parentheses and may hold
// any character, so the last one ends it.
func (l *Locator) stat(pid int64) (start uint64, command string, err error) {
	text, err := l.read(pid, "stat")
	if err != nil {
		return 0, "", err
	}
	from, to := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if from < 0 || to < from {
		return 0, "", fmt.Errorf("process %d: stat has no command", pid)
	}
	fields := strings.Fields(string(text[to+1:]))
	const startTime = 22 - 3 // of proc(5), counted from the state, which is the third
	if len(fields) <= startTime {
		return 0, "", fmt.Errorf("process %d: stat has %d fields", pid, len(fields)+2)
	}
	if start, err = strconv.ParseUint(fields[startTime], 10, 64); err != nil {
		return 0, "", fmt.Errorf("process %d: start time: %w", pid, err)
	}
	return start, string(text[from+1 : to]), nil
}

func (l *Locator) read(pid int64, name string) ([]byte, error) {
	f, err := os.Open(filepath.Join(l.Proc, strconv.FormatInt(pid, 10), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxRead))
	if err != nil { // it ended while it was read
		return nil, fmt.Errorf("process %d: %w: %w", pid, ErrGone, err)
	}
	return text, nil
}
