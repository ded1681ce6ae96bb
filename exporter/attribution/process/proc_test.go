package process

import (
	"strconv"
	"strings"
	"sync"
	"testing"
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

// Whatever stands in an environment, a job's number is a number.
func FuzzToldJob(f *testing.F) {
	f.Add("A=1\x00SLURM_JOB_ID=7\x00")
	f.Add("SLURM_JOB_ID=")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, environ string) {
		tree{t, dir}.add("7/environ", environ)
		if got := (&Locator{Proc: dir}).toldJob(7); got != "" && !isNumber(got) {
			t.Errorf("job %q", got)
		}
	})
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
				}
				if _, err := l.Locate(99); err == nil {
					t.Error("99 was found")
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
