package diagnosis

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// access returns why this process may not read and write a file. It does not open the file, since opening a
// GPU's device node starts the GPU. A control group that denies a device gives EPERM, its mode EACCES.
func access(path string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}
