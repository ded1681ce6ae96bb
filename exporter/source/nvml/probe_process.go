package nvml

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// probeTimeout is how long another process may take to initialise NVML.
	probeTimeout = time.Minute
	// maxReport is above what a report of 64 devices takes.
	maxReport = 64 << 10
)

// report is what Probe prints: how NVML is initialised by a process of its own.
type report struct {
	InitSeconds float64  `json:"init_seconds"`
	UUIDs       []string `json:"uuids"` // of the devices that answer
	Error       string   `json:"error,omitempty"`
}

// probe is a process that has initialised NVML and holds the devices until it is released.
type probe struct {
	why     string // it was started
	init    time.Duration
	uuids   map[string]bool
	release func()
}

// adds reports whether a process started now reads a device besides those, and all of them.
func (p *probe) adds(healthy map[string]bool) bool {
	for uuid := range healthy {
		if !p.uuids[uuid] {
			return false
		}
	}
	return len(p.uuids) > len(healthy)
}

// prober returns what starts Config.Probe; nil without one.
func (c *Config) prober() func(context.Context) (*probe, error) {
	if c.startProbe != nil || len(c.Probe) == 0 {
		return c.startProbe
	}
	p := &prober{command: c.Probe, timeout: probeTimeout}
	return p.start
}

// prober starts processes that initialise NVML.
type prober struct {
	command []string
	timeout time.Duration
	alive   atomic.Int32 // processes that have not ended; a driver that hangs keeps one, killed or not
}

// maxAlive is how many processes are needed at once: one that holds the devices, and one that is timed.
const maxAlive = 2

var errAlive = errors.New("probe: an earlier process still hangs in the driver")

// start starts a process and waits for its report, no longer than the timeout or until the context ends.
func (p *prober) start(ctx context.Context) (*probe, error) {
	if p.alive.Load() >= maxAlive {
		return nil, errAlive
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, p.command[0], p.command[1:]...)
	cmd.WaitDelay = time.Second
	var said strings.Builder
	cmd.Stderr = &limited{to: &said, left: 512}
	hold, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := cmp.Or(errIn, errOut); err != nil {
		cancel()
		return nil, fmt.Errorf("probe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("probe: %w", err)
	}
	p.alive.Add(1)
	late := time.AfterFunc(p.timeout, cancel)
	unblock := context.AfterFunc(ctx, func() { out.Close() }) //nolint:errcheck // the read fails, whether or not the process can be killed
	got, err := readReport(out)
	unblock()
	if !late.Stop() {
		err = fmt.Errorf("NVML was not initialised within %v", p.timeout)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait() //nolint:errcheck // the report says how it went
		p.alive.Add(-1)
		close(ended)
	}()
	release := sync.OnceFunc(func() {
		hold.Close() //nolint:errcheck // the process ends by that, or is killed
		ends(time.Second, func() { <-ended })
		cancel()
	})
	if err != nil {
		cancel()
		release()
		return nil, fmt.Errorf("probe: %w%s", err, p.quote(ended, &said))
	}
	found := &probe{init: time.Duration(got.InitSeconds * float64(time.Second)), uuids: map[string]bool{}, release: release}
	for _, uuid := range got.UUIDs {
		found.uuids[uuid] = true
	}
	return found, nil
}

// quote returns what the process wrote to its standard error, once it has ended.
func (p *prober) quote(ended <-chan struct{}, said *strings.Builder) string {
	select {
	case <-ended:
		if text := strings.TrimSpace(said.String()); text != "" {
			return ": " + text
		}
	default: // it may still write
	}
	return ""
}

// readReport reads the one line that Probe prints.
func readReport(from io.Reader) (got report, err error) {
	line, err := bufio.NewReader(io.LimitReader(from, maxReport)).ReadBytes('\n')
	if err != nil {
		return got, fmt.Errorf("it ended without a report: %w", err)
	}
	if err := json.Unmarshal(line, &got); err != nil {
		return got, fmt.Errorf("report: %w", err)
	}
	if got.Error != "" {
		return got, errors.New(got.Error)
	}
	return got, nil
}

// limited keeps the beginning of what a process writes.
type limited struct {
	to   io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if _, err := l.to.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// ends reports whether something ended in time.
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
