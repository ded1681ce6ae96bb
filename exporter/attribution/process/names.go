package process

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// reading is something being read that may take for ever: whoever wants it waits for a while only.
type reading[T any] struct {
	begun time.Time
	done  chan struct{}
	value T
	err   error
}

var errHangs = errors.New("has not answered")

func begin[T any](read func() (T, error)) *reading[T] {
	r := &reading[T]{begun: time.Now(), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.value, r.err = read()
	}()
	return r
}

// within waits until a time after it was begun.
func (r *reading[T]) within(timeout time.Duration) (value T, err error) {
	select {
	case <-r.done:
	case <-time.After(timeout - time.Since(r.begun)):
	}
	select {
	case <-r.done: // also when both came about
		return r.value, r.err
	default:
		return value, errHangs
	}
}

// names are the host's users by number.
type names struct {
	mu    sync.Mutex
	by    map[string]string
	asked time.Time
	next  *reading[map[string]string] // nil: none is begun
}

const (
	namesPeriod  = 5 * time.Minute
	namesTimeout = time.Second // a scrape must not wait for a disk that hangs
	maxPasswd    = 4 << 20     // some 50,000 users
)

// of is the name of a user, empty where it is not known. No lock is held while the file is waited for.
func (n *names) of(proc, user string, now time.Time) string {
	if next := n.start(proc, now); next != nil {
		by, err := next.within(namesTimeout)
		if !errors.Is(err, errHangs) {
			n.end(next, by, err)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.by[user]
}

// start returns the read of the names that is under way, and starts one when it is time; nil: it is not.
func (n *names) start(proc string, now time.Time) *reading[map[string]string] {
	n.mu.Lock()
	defer n.mu.Unlock()
	if age := now.Sub(n.asked); n.next == nil && (n.asked.IsZero() || age < 0 || age >= namesPeriod) {
		n.asked = now
		n.next = begin(func() (map[string]string, error) { return readNames(proc) })
	}
	return n.next
}

// end takes in what a read brought. When it failed, the names of the read before stay.
func (n *names) end(r *reading[map[string]string], by map[string]string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next != r {
		return // another caller has
	}
	n.next = nil
	if err == nil {
		n.by = by
	}
}

// readNames reads the host's /etc/passwd, which is that of its first process whatever container this
// one runs in. It needs CAP_SYS_PTRACE. Users of a directory service are not in it.
func readNames(proc string) (map[string]string, error) {
	f, err := os.Open(filepath.Join(proc, "1/root/etc/passwd"))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxPasswd))
	if err != nil {
		return nil, err
	}
	return parseNames(string(text)), nil
}

func parseNames(passwd string) map[string]string {
	by := map[string]string{}
	for line := range strings.Lines(passwd) {
		fields := strings.Split(line, ":")
		if len(fields) > 2 && isNumber(fields[2]) && by[fields[2]] == "" { // the first of several, as for all programs
			by[fields[2]] = printable(fields[0])
		}
	}
	return by
}
