package process

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// names are the host's users by number.
type names struct {
	mu      sync.Mutex
	by      map[string]string
	asked   time.Time
	reading bool
}

const (
	namesPeriod  = 5 * time.Minute
	namesTimeout = time.Second // a scrape must not wait for a disk that hangs
	maxPasswd    = 4 << 20     // some 50,000 users
)

// of is the name of a user, empty where it is not known. Only who asks first waits until it is read.
func (n *names) of(proc, user string, now time.Time) string {
	n.mu.Lock()
	age := now.Sub(n.asked)
	if !n.reading && (n.asked.IsZero() || age < 0 || age >= namesPeriod) {
		first := n.asked.IsZero()
		n.asked, n.reading = now, true
		done := make(chan struct{})
		go func() {
			defer close(done)
			by, err := readNames(proc)
			n.mu.Lock()
			defer n.mu.Unlock()
			n.reading = false
			if err == nil { // else what was read before stays true
				n.by = by
			}
		}()
		if first {
			n.mu.Unlock()
			select {
			case <-done:
			case <-time.After(namesTimeout):
			}
			n.mu.Lock()
		}
	}
	defer n.mu.Unlock()
	return n.by[user]
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
