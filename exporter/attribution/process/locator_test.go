package process

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tree is a /proc of our own.
type tree struct {
	*testing.T
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

func TestLocate(t *testing.T) {
	p := tree{t, t.TempDir()}
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

	if _, err := l.Locate(8); !errors.Is(err, ErrGone) {
		t.Errorf("one that is not there: %v", err)
	}
	for name, stat := range map[string]string{"empty": "", "cut": "9 (x", "short": "9 (x) S 1 2", "not a number": "9 (x) S" + strings.Repeat(" x", 20)} {
		p.put(9, 1, "x", "")
		if err := os.WriteFile(filepath.Join(p.dir, "9/stat"), []byte(stat), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Locate(9); err == nil {
			t.Errorf("stat that is %s was believed", name)
		}
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
