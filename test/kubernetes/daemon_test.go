package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is for what comes in seconds on a machine with nothing else to do.
const patience = 2 * time.Minute

// daemon is a program that runs until it is stopped, and may be started again.
type daemon struct {
	name string
	path string
	args []string
	env  []string
	log  string // file
	cmd  *exec.Cmd
	end  chan error
}

// start starts it, and has it stopped with the test.
func (d *daemon) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the program has it
	d.cmd = exec.Command(d.path, d.args...)
	d.cmd.Env = append(os.Environ(), d.env...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.end = make(chan error, 1)
	go func(cmd *exec.Cmd, end chan<- error) { end <- cmd.Wait() }(d.cmd, d.end)
}

// stop has it end, by force if it takes long, and says how it ended.
func (d *daemon) stop() error {
	if d.cmd == nil {
		return nil
	}
	cmd := d.cmd
	d.cmd = nil
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-d.end:
		return err
	case <-time.After(20 * time.Second):
		return errors.Join(fmt.Errorf("%s does not end", d.name), cmd.Process.Kill(), <-d.end)
	}
}

// kill ends it at once.
func (d *daemon) kill(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-d.end; err == nil {
		t.Fatalf("%s had ended by itself", d.name)
	}
	d.cmd = nil
}

// tail is the end of what it said.
func (d *daemon) tail() string {
	text, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// await tries until it goes well, or fails the test with what the last try said.
func await(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	awaitWith(t.Context(), t, what, try)
}

// awaitWith does so also when the test is ending.
func awaitWith(ctx context.Context, t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began, last := time.Now(), errors.New("it was not tried")
	for {
		err := try(ctx)
		if err == nil {
			if took := time.Since(began); took > 5*time.Second {
				t.Logf("%s took %v; until then %v", what, took.Round(time.Second), last)
			}
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not after %v: %v", what, patience, last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// write writes a file, and the directories above it.
func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// output runs a program to its end.
func output(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, said)
	}
	return string(said)
}
