package nvml

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
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
	command := c.Probe
	return func(ctx context.Context) (*probe, error) { return startProbe(ctx, command) }
}

// startProbe starts the process and waits for its report. It is killed when it takes longer than
// probeTimeout or the context ends before.
func startProbe(ctx context.Context, command []string) (*probe, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = time.Second
	var said strings.Builder
	cmd.Stderr = &limited{to: &said, left: 512}
	hold, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, fmt.Errorf("probe: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, fmt.Errorf("probe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("probe: %w", err)
	}
	late := time.AfterFunc(probeTimeout, cancel)
	release := sync.OnceFunc(func() {
		hold.Close()                                                       //nolint:errcheck // the process ends either way
		ends(time.Second, func() { io.Copy(io.Discard, out); cmd.Wait() }) //nolint:errcheck // it has reported
		cancel()
	})
	got, err := readReport(out)
	if !late.Stop() {
		err = fmt.Errorf("NVML was not initialised within %v", probeTimeout)
	}
	if err != nil {
		release()
		return nil, fmt.Errorf("probe: %w; %s", err, strings.TrimSpace(said.String()))
	}
	p := &probe{init: time.Duration(got.InitSeconds * float64(time.Second)), uuids: map[string]bool{}, release: release}
	for _, uuid := range got.UUIDs {
		p.uuids[uuid] = true
	}
	return p, nil
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
