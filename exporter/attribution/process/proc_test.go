package process

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"
)

// Whatever stands in the files of a process and of users, it is no word that could not be a label.
func FuzzProc(f *testing.F) {
	f.Add("7 (a) S" + strings.Repeat(" 1", 30))
	f.Add("Name:\ta\nUid:\t1000\t0\t0\t0\n")
	f.Add("ada:x:1000:::\n:::\nb\x1bb:x:2:\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, words, err := parseStat([]byte(text))
		if err != nil && words != "" {
			t.Errorf("command %q and %v", words, err)
		}
		for uid, name := range parseNames(text) {
			if !isNumber(uid) {
				t.Errorf("user %q", uid)
			}
			words += name
		}
		if strings.ContainsFunc(words, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q", words)
		}
		if uid := parseUID(text); uid != "" && !isNumber(uid) {
			t.Errorf("user %q", uid)
		}
	})
}

// A /proc that hangs is not waited for: each process is asked once, and what comes late is there the
// next time.
func TestProcHangs(t *testing.T) {
	p := tree{t, t.TempDir()}
	p.put(1, 0, "init", "")
	const many = 20
	for pid := 10; pid < 10+many; pid++ {
		p.put(pid, 100, "python3", "")
		file := filepath.Join(p.dir, strconv.Itoa(pid), "cgroup")
		if err := errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	p.put(5, 100, "python3", "0::/system.slice/ollama.service")
	l := &Locator{Proc: p.dir}
	for range 2 {
		for pid := int64(10); pid < 10+many; pid++ {
			if got, err := l.Locate(pid); !errors.Is(err, ErrHanging) {
				t.Errorf("process %d: %+v, %v", pid, got, err)
			}
		}
		l.mu.Lock()
		if n := len(l.locating); n != many {
			t.Errorf("%d are waited for, of %d", n, many)
		}
		l.mu.Unlock()
	}
	if n := l.Counts()["hanging"]; n != 2*many {
		t.Errorf("counted %d times", n)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) { // one that answers is known all the same
		if got, err := l.Locate(5); err == nil && got.Unit == "ollama.service" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("one that answers is not known beside those that hang")
		}
	}
	for pid := 10; pid < 10+many; pid++ {
		f, err := os.OpenFile(filepath.Join(p.dir, strconv.Itoa(pid), "cgroup"), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("0::/system.slice/late.service\n"); err != nil {
			t.Fatal(err)
		}
		f.Close() //nolint:errcheck // it is a pipe
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if got, err := l.Locate(10); err == nil && got.Unit == "late.service" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("what came late is not known")
		}
	}
}

// A disk that hangs costs the names of users, and once a moment; what was read before it hung stays.
func TestNamesHang(t *testing.T) {
	p := tree{t, t.TempDir()}
	p.add("1/root/etc/passwd", "ada:x:1000:::\n")
	n, now := new(names), time.Unix(1_800_000_000, 0)
	if got := n.of(p.dir, "1000", now); got != "ada" {
		t.Errorf("user 1000 is %q", got)
	}
	file := filepath.Join(p.dir, "1/root/etc/passwd")
	if err := errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(namesPeriod)
	var first *reading[map[string]string]
	for range 20 {
		if got := n.of(p.dir, "1000", now); got != "ada" {
			t.Errorf("while it hangs user 1000 is %q", got)
		}
		if first == nil {
			first = n.next
		}
		if n.next == nil || n.next != first {
			t.Error("while it hangs it is asked again")
		}
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("eve:x:1000:::\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); n.of(p.dir, "1000", now) != "eve"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("what was read in the end is not known")
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := n.of(p.dir, "1000", now.Add(namesPeriod)); got != "eve" {
		t.Errorf("without the file user 1000 is %q", got)
	}
}

// Pictures and the self metrics ask at once.
func TestConcurrent(t *testing.T) {
	p := tree{t, t.TempDir()}
	p.add("1/root/etc/passwd", "ada:x:1000:::\n")
	for pid := range 4 {
		p.put(10+pid, 100, "python3", "0::/user.slice/user-1000.slice/session-4.scope\n")
	}
	l := &Locator{Proc: p.dir}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for range 50 {
				if got, err := l.Locate(int64(10 + n%4)); err != nil || got.Login != "ada" {
					t.Errorf("%d: %+v, %v", 10+n%4, got, err)
					return
				}
				if _, err := l.Locate(99); err == nil {
					t.Error("99 was found")
					return
				}
				l.Counts()
			}
		})
	}
	all.Wait()
	if got := l.Counts()["gone"]; got != 400 {
		t.Errorf("gone was counted %s times, want 400", strconv.FormatUint(got, 10))
	}
}
