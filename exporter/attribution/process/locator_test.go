package process

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tree is a /proc of our own.
type tree struct {
	testing.TB
	dir string
}

func (p tree) put(pid int, start int, command, cgroup string) {
	p.Helper()
	dir := filepath.Join(p.dir, strconv.Itoa(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.Fatal(err)
	}
	stat := strconv.Itoa(pid) + " (" + command + ") S" + strings.Repeat(" 0", 18) + " " + strconv.Itoa(start) + " 0 0\n"
	for name, text := range map[string]string{"stat": stat, "cgroup": cgroup} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			p.Fatal(err)
		}
	}
}

// add writes one more file of a process, or of the host below 1/root.
func (p tree) add(path, text string) {
	p.Helper()
	path = filepath.Join(p.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.Fatal(err)
	}
}

func TestLocate(t *testing.T) {
	p := tree{t, t.TempDir()}
	p.put(1, 0, "init", "0::/init.scope\n")
	now := time.Unix(1_800_000_000, 0)
	l := &Locator{Proc: p.dir, Now: func() time.Time { return now }}
	want := func(what string, pid int64, command, unit string) {
		t.Helper()
		got, err := l.Locate(pid)
		if err != nil || got.Command != command || got.Unit != unit {
			t.Errorf("%s: %+v, %v; want %q of %q", what, got, err, command, unit)
		}
	}
	p.put(7, 100, "a ) S (b", "0::/system.slice/ollama.service\n")
	want("first seen", 7, "a ) S (b", "ollama.service")
	p.put(7, 100, "a ) S (b", "0::/system.slice/other.service\n")
	want("moved, and looked up a moment ago", 7, "a ) S (b", "ollama.service")
	now = now.Add(again)
	want("moved, and looked up anew", 7, "a ) S (b", "other.service")
	p.put(7, 200, "next", "0::/system.slice/next.service\n")
	want("another process of the same number", 7, "next", "next.service")
	p.put(7, 300, "next", "0::/system.slice/last.service\n")
	want("another one with the same command", 7, "next", "last.service")
	p.put(7, 300, "exec", "0::/system.slice/exec.service\n")
	want("it has begun another program", 7, "exec", "exec.service")
	p.put(7, 300, "exec", "0::/system.slice/back.service\n")
	now = now.Add(-time.Hour)
	want("the clock was set back", 7, "exec", "back.service")
	p.put(7, 300, "exec", "0::/system.slice/forth.service\n")
	now = now.Add(2 * time.Hour)
	want("the clock was set forward", 7, "exec", "forth.service")
	p.put(7, 400, "\x1b[31m\n\xff", "0::/system.slice/forth.service\n")
	want("a command that would disturb a terminal", 7, "?[31m?\ufffd", "forth.service")

	if _, err := l.Locate(8); !errors.Is(err, ErrGone) {
		t.Errorf("one that is not there: %v", err)
	}
	for name, stat := range map[string]string{"empty": "", "cut": "9 (x", "short": "9 (x) S 1 2", "not a number": "9 (x) S" + strings.Repeat(" x", 20)} {
		p.put(9, 1, "x", "")
		p.add("9/stat", stat)
		if _, err := l.Locate(9); !errors.Is(err, ErrMalformed) {
			t.Errorf("stat that is %s: %v", name, err)
		}
	}
	if err := os.RemoveAll(filepath.Join(p.dir, "1")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Locate(8); !errors.Is(err, ErrHidden) {
		t.Errorf("one of a /proc that shows no others: %v", err)
	}
	counted(t, l, map[string]uint64{"gone": 1, "hidden": 1, "malformed": 4, "denied": 0, "hanging": 0, "too_many_files": 0})
}

func counted(t *testing.T, l *Locator, want map[string]uint64) {
	t.Helper()
	if got := l.Counts(); !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// A number that is given to the next process between two files of it must not make one process of
// both; one that keeps being given away is nobody's.
func TestReusedWhileLocated(t *testing.T) {
	p := tree{t, t.TempDir()}
	p.put(1, 0, "init", "")
	p.put(7, 100, "old", "")
	// next makes the reader of the control group wait, and meanwhile puts another process there.
	next := func(start int, command, cgroup string) {
		fifo := filepath.Join(p.dir, "7/cgroup")
		if err := errors.Join(os.Remove(fifo), syscall.Mkfifo(fifo, 0o600)); err != nil {
			t.Fatal(err)
		}
		go func() {
			f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // until it is opened for reading
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close() //nolint:errcheck // a pipe
			if err := os.Remove(fifo); err != nil {
				t.Error(err)
			}
			p.put(7, start, command, cgroup)
			if _, err := f.WriteString("0::/system.slice/of-whom.service\n"); err != nil {
				t.Error(err)
			}
		}()
	}
	l := &Locator{Proc: p.dir}
	next(200, "new", "0::/system.slice/new.service\n")
	if got, err := l.Locate(7); err != nil || got.Command != "new" || got.Unit != "new.service" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := l.Locate(7); err != nil || got.Unit != "new.service" {
		t.Errorf("from memory: %+v, %v", got, err)
	}
}

// Outside units, pods, jobs and containers the user is told, by name where the host knows one.
func TestLogin(t *testing.T) {
	const session, bare = "0::/user.slice/user-1000.slice/session-4.scope\n", "0::/\n"
	status := func(uid string) string { return "Name:\tpython3\nUid:\t" + uid + "\t0\t0\t0\nGid:\t0\t0\t0\t0\n" }
	for name, c := range map[string]struct{ cgroup, status, want string }{
		"a session":                     {session, status("1000"), "ada"},
		"sudo in a session":             {session, status("0"), "ada"},
		"without a session":             {bare, status("1001"), "bob"},
		"whom the host has not":         {bare, status("5000"), "5000"},
		"root":                          {bare, status("0"), ""},
		"root's session":                {"0::/user.slice/user-0.slice/session-1.scope\n", status("0"), ""},
		"status is cut":                 {bare, "Name:\tx\nUid:\t10", ""},
		"a unit of the user":            {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/lab.service\n", status("1000"), "ada"},
		"a unit of the system":          {"0::/system.slice/ollama.service\n", status("1000"), ""},
		"a container of the user":       {"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + cid + ".scope\n", status("1000"), "ada"},
		"a name that disturbs":          {bare, status("1002"), "e?ve"},
		"a command that looks like one": {bare, "Name:\tUid:\t1000 1 1 1\nUid:\t1001\t0\t0\t0\n", "bob"},
	} {
		p := tree{t, t.TempDir()}
		p.add("1/root/etc/passwd", "root:x:0:0::/:/bin/sh\n# 1000\nada:x:1000:1000:Ada:/home/ada:/bin/sh\nlater:x:1000:0:::\nbob:x:1001:1:::\ne\x1bve:x:1002:1:::\nbroken\n:::\n")
		p.put(7, 100, "python3", c.cgroup)
		p.add("7/status", c.status)
		if got, err := (&Locator{Proc: p.dir}).Locate(7); err != nil || got.Login != c.want {
			t.Errorf("%s: %+v, %v; want %q", name, got, err, c.want)
		}
	}
	p := tree{t, t.TempDir()}
	p.put(1, 0, "init", "")
	p.put(7, 100, "python3", session)
	if got, err := (&Locator{Proc: p.dir}).Locate(7); err != nil || got.Login != "1000" {
		t.Errorf("where the host's users may not be read: %+v, %v", got, err)
	}
}

// This process is found in this machine's own /proc.
func TestLocateReal(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc here")
	}
	got, err := (&Locator{Proc: "/proc"}).Locate(int64(os.Getpid()))
	if err != nil || got.Command == "" || got.start == 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
