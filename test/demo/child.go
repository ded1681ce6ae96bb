package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// child is a program that was started.
type child struct {
	name, url string
	ready     string // the path that answers 200 when it is
	log       string // file
	cmd       *exec.Cmd
	ended     chan struct{}
	err       error // why it ended, once it has
}

// launch starts a program that listens on a port, with its log in a folder.
func launch(dir, name string, port int, ready, program string, args ...string) (*child, error) {
	c := &child{
		name: name, url: fmt.Sprintf("http://127.0.0.1:%d", port), ready: ready,
		log: filepath.Join(dir, name+".log"), cmd: exec.Command(program, args...), ended: make(chan struct{}),
	}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer log.Close() //nolint:errcheck // the child has it
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.SysProcAttr = log, log, apart()
	for _, v := range os.Environ() { // the settings of another exporter are none of ours
		if !strings.HasPrefix(v, "GPUMETER_") && !strings.HasPrefix(v, "STATE_DIRECTORY=") {
			c.cmd.Env = append(c.cmd.Env, v)
		}
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

// await waits until it answers.
func (c *child) await(ctx context.Context) error {
	const patience = time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+c.ready, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if answer, err := http.DefaultClient.Do(r); err == nil {
			answer.Body.Close() //nolint:errcheck // nothing of it is read
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-c.ended:
			return c.obituary()
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w; the end of its log:\n%s", c.name, ctx.Err(), c.lastLines())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// obituary says how it ended, with its last words.
func (c *child) obituary() error {
	how := "it ended by itself"
	if c.err != nil {
		how = c.err.Error()
	}
	return fmt.Errorf("%s is gone: %s; the end of its log:\n%s", c.name, how, c.lastLines())
}

// lastLines are the end of its log.
func (c *child) lastLines() string {
	const most = 15
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-most):], "\n  ")
}

// end asks it to end, and insists after a while.
func (c *child) end() error {
	const patience = 10 * time.Second
	c.cmd.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended by itself
	select {
	case <-c.ended:
		return nil
	case <-time.After(patience):
	}
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	<-c.ended
	return fmt.Errorf("%s had to be killed", c.name)
}
