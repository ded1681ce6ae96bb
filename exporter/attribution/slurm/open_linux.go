package slurm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// openDir opens a directory; its path is the administrator's, and may have links.
func openDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_DIRECTORY, 0)
}

// openDirIn opens a directory of a directory, as openIn does a file.
func openDirIn(dir *os.File, name string) (*os.File, error) {
	return openAt(dir, name, unix.O_DIRECTORY)
}

// openIn opens a file of a directory, by its name alone and never through a link of any kind. It never waits:
// not for the writer of a pipe.
func openIn(dir *os.File, name string) (*os.File, error) { return openAt(dir, name, 0) }

func openAt(dir *os.File, name string, flags int) (*os.File, error) {
	path := filepath.Join(dir.Name(), name)
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_NOCTTY | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd, err := unix.Openat2(int(dir.Fd()), name, &how)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // Linux before 5.6, or refused by a seccomp filter
		fd, err = openLast(dir, name, int(how.Flags))
	}
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR) && flags&unix.O_DIRECTORY != 0:
		return nil, &os.PathError{Op: "open", Path: path, Err: errNotFile}
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openLast opens a name that is no path without openat2: then no component but the last can be a link.
func openLast(dir *os.File, name string, flags int) (int, error) {
	if name != filepath.Base(name) || name == ".." {
		return 0, unix.EXDEV
	}
	return unix.Openat(int(dir.Fd()), name, flags, 0)
}

// owned returns a file's owner and its number of hard links.
func owned(info fs.FileInfo) (uid uint32, links uint64) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Uid, uint64(stat.Nlink) //nolint:unconvert // it is narrower on other machines
	}
	return 0, 1
}
