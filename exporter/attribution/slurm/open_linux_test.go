package slurm

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Without openat2, as before Linux 5.6, no link is followed either, and no path is taken for a name.
func TestOpenLast_FollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "0", "7\n", time.Hour)
	if err := os.Symlink("0", filepath.Join(dir, "1")); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	for name, want := range map[string]bool{"0": true, "1": false, "../" + filepath.Base(dir) + "/0": false, "..": false} {
		fd, err := openLast(f, name, unix.O_RDONLY|unix.O_NOFOLLOW)
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			unix.Close(fd) //nolint:errcheck // it was only read
		}
	}
}
