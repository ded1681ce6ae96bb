package kernellog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A file that is cut short is read anew, and one that takes its name is read after it.
func TestFileReplaced(t *testing.T) {
	j := newJournal(t)
	j.says(xid(13))
	h := listen(t, Config{Path: j.path, Proc: proc(t, boot), History: true})
	h.until(1, 13)
	if err := os.Truncate(j.path, 0); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * lookAgain)
	j.says(xid(31))
	h.until(2, 13, 31)
	if err := os.Rename(j.path, j.path+".1"); err != nil {
		t.Fatal(err)
	}
	j.path += ".1"
	j.says(xid(43)) // into the old one
	j.path = strings.TrimSuffix(j.path, ".1")
	j.says(xid(45))
	h.until(4, 13, 31, 43, 45)
	if err := os.Remove(j.path); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * lookAgain)
	// Written anew with what was read, it says nothing new.
	j.sequence = 3
	j.says(xid(45), xid(48))
	h.until(5, 13, 31, 43, 45, 48)
}

// What was written into the old file after its end was met is not lost.
func TestOldFileIsReadToItsEnd(t *testing.T) {
	j := newJournal(t)
	j.says("one")
	f, err := openFile(j.path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { f.Close() }() //nolint:errcheck // it was only read
	next := func(want string) {
		t.Helper()
		if line, err := f.next(); err != nil || !strings.HasSuffix(string(line), want) {
			t.Fatalf("%q, %v, want %q", line, err, want)
		}
	}
	next("one")
	old := *j
	old.path += ".1"
	if err := os.Rename(j.path, old.path); err != nil {
		t.Fatal(err)
	}
	j.says("three")
	if again, err := f.replaced(); !again || err != nil { // the end is met just before the old one grows
		t.Fatal(again, err)
	}
	old.says("two")
	next("two")
	next("three")
}

func TestNoLog(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ path, want string }{
		"missing":     {filepath.Join(dir, "none"), "no such file"},
		"a directory": {dir, "is not the kernel's log"},
		"a device":    {os.DevNull, "is not the kernel's log"},
	} {
		if l, err := Open(Config{Path: c.path, Proc: "/proc"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want %q", name, l, err, c.want)
		}
	}
}
