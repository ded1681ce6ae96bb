package process

import (
	"errors"
	"syscall"
	"testing"
)

// A process whose files cannot be opened because this process has too many open is not reported as gone.
func TestLocator_TooManyOpenFiles(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	low := limit
	low.Cur = 1
	l := &Locator{Proc: "/proc"}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	_, err := l.Locate(1)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, ErrFiles) || l.Counts()["too_many_files"] != 1 || l.Counts()["gone"] != 0 {
		t.Errorf("%v, counts %v; want %v", err, l.Counts(), ErrFiles)
	}
}
