package process

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"
)

// Where /proc is mounted so that users see their own processes alone, another's is hidden or may not be
// read, and is told so rather than as gone.
func TestHidePID(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may mount a /proc and become somebody else")
	}
	for option, want := range map[string]error{"hidepid=2": ErrHidden, "hidepid=1": ErrDenied} {
		const dir = "/proc" // of this thread, which everybody may look into
		said := make(chan error)
		go func() { // the thread ends with it, so that the others stay who and where they are
			runtime.LockOSThread()
			said <- asNobody(dir, option, func() error {
				_, err := (&Locator{Proc: dir}).locate(1) // on this thread
				return err
			})
		}()
		err := <-said
		if errors.Is(err, errMount) {
			t.Skipf("no /proc of our own here: %v", err)
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", option, err, want)
		}
	}
}

var errMount = errors.New("not mounted")

// asNobody mounts a /proc that this thread alone sees, and does something as another user.
func asNobody(dir, option string, do func() error) error {
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return errors.Join(errMount, err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return errors.Join(errMount, err)
	}
	if err := syscall.Mount("proc", dir, "proc", 0, option); err != nil {
		return errors.Join(errMount, err)
	}
	const nobody = 65534
	// Not syscall.Setresuid and its like, which would change every thread. Who is in group 0 sees all.
	for _, call := range [][2]uintptr{{syscall.SYS_SETGROUPS, 0}, {syscall.SYS_SETRESGID, nobody}, {syscall.SYS_SETRESUID, nobody}} {
		if _, _, failed := syscall.RawSyscall(call[0], call[1], call[1], call[1]); failed != 0 {
			return failed
		}
	}
	return do()
}
