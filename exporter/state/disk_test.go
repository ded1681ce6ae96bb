package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/safefile"
)

// A save that hangs costs its caller the patience once; from then on callers return at once and start nothing,
// until the disk responds.
func TestDisk_HungOperationIsTheOnlyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, thaw, runs := newDisk(), make(chan struct{}), 0
		try := func() (time.Duration, error) {
			start := time.Now()
			err := d.do(func() error { runs++; <-thaw; return errors.New("disk full") })
			return time.Since(start), err
		}
		if took, err := try(); !errors.Is(err, ErrHanging) || took != safefile.Patience {
			t.Errorf("%v after %v, want ErrHanging after %v", err, took, safefile.Patience)
		}
		for range 10 {
			if took, err := try(); !errors.Is(err, ErrHanging) || took != 0 {
				t.Errorf("%v after %v while the disk hangs, want ErrHanging at once", err, took)
			}
		}
		close(thaw)
		synctest.Wait()
		if _, err := try(); err == nil || err.Error() != "disk full" || runs != 2 {
			t.Errorf("%v, %d operations; want the error of the second operation", err, runs)
		}
	})
}

// An operation that waits for its turn waits no longer than its patience.
func TestDisk_TurnIsWaitedForWithPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, thaw := newDisk(), make(chan struct{})
		go d.do(func() error { <-thaw; return nil }) //nolint:errcheck // it hangs
		time.Sleep(time.Second)
		start := time.Now()
		if err := d.do(func() error { return nil }); !errors.Is(err, ErrHanging) || time.Since(start) != safefile.Patience {
			t.Errorf("%v after %v, want ErrHanging after %v", err, time.Since(start), safefile.Patience)
		}
		close(thaw)
		synctest.Wait()
	})
}

// What is no regular file in place of a state file is an error that names it, without a wait.
func TestStore_LoadRefusesWhatIsNoRegularFile(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"named pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory":  func(path string) error { return os.Mkdir(path, 0o700) },
		"symbolic link": func(path string) error {
			return errors.Join(os.WriteFile(path+".real", []byte("7"), 0o600), os.Symlink(path+".real", path))
		},
	} {
		dir := t.TempDir()
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := put(filepath.Join(dir, "fact.json")); err != nil {
			t.Fatal(err)
		}
		var fact int
		there, err := s.Load("fact", &fact)
		if there || !errors.Is(err, safefile.ErrNotRegular) || !strings.Contains(err.Error(), "fact.json") || !strings.Contains(err.Error(), name) || s.Faults() != 1 {
			t.Errorf("%s: there %v, %v, %d faults", name, there, err, s.Faults())
		}
	}
}
