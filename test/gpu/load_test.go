package gpu

import (
	"bytes"
	_ "embed" // the program that is compiled where the test runs
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

//go:embed load/load.c
var loadSource string

// loading is a program that keeps the GPUs busy.
type loading struct {
	cmd  *exec.Cmd
	said *bytes.Buffer
	done chan error
}

// startLoad makes the GPUs busy for as long, or until the test is over.
func (m *machine) startLoad(t testing.TB, length time.Duration) *loading {
	t.Helper()
	l := &loading{said: new(bytes.Buffer), done: make(chan error, 1)}
	if m.load != "" {
		l.cmd = exec.Command("sh", "-c", m.load)
	} else {
		l.cmd = exec.Command(compiled(t, "load", loadSource), show(length.Seconds()))
	}
	l.cmd.Env = append(os.Environ(), m.env...)
	l.cmd.Stdout, l.cmd.Stderr = l.said, l.said
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what a command line starts ends with it
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { l.done <- l.cmd.Wait() }()
	t.Cleanup(func() { l.stop(t) })
	return l
}

// stop ends the load, if it has not ended.
func (l *loading) stop(t testing.TB) {
	t.Helper()
	if l.cmd == nil {
		return
	}
	if err := syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
	<-l.done //nolint:errcheck // it was killed
	l.cmd = nil
}

// seen waits until each GPU that reports a utilization is busy. It fails with what the load printed
// when the load ends, or keeps no GPU busy in time. Under MIG no GPU reports a utilization; then
// what the load does is not seen.
func (l *loading) seen(t testing.TB, s *server, uuids []string, within time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(within); ; {
		select {
		case err := <-l.done:
			l.done <- err // for stop
			t.Fatalf("the load ended: %v\n%s", err, l.said)
		case <-time.After(time.Second):
		}
		p, err := s.page()
		if err != nil {
			t.Fatal(err)
		}
		busy, idle := utilized(p, uuids)
		if len(busy)+len(idle) == 0 {
			t.Log("no GPU reports a utilization: whether the load keeps them busy is not checked")
			return
		}
		if len(idle) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v are not busy after %v of load\n%s", idle, within, strings.TrimSpace(l.said.String()))
		}
	}
}

// utilized divides the GPUs that report a utilization into those that are busy and those that are not.
func utilized(p page, uuids []string) (busy, idle []string) {
	for _, uuid := range uuids {
		n, there := p.number(uuid, "gpu_utilization_ratio")
		switch {
		case !there:
		case n < .5:
			idle = append(idle, uuid)
		default:
			busy = append(busy, uuid)
		}
	}
	return busy, idle
}
