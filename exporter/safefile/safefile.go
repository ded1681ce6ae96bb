// Package safefile reads files that other programs write. It reads regular files of limited size, and no
// caller waits longer than a deadline for a disk, a mount or a file that does not respond.
package safefile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// Patience is the longest time that a caller waits for a file.
const Patience = 5 * time.Second

// The errors of a Read, besides those of the file system. Each error names the path.
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrTooLarge   = errors.New("file too large")
	ErrHanging    = errors.New("the file does not respond")
)

// Read reads a regular file of at most limit bytes. It returns ErrHanging when the file does not respond until
// the context ends or Patience is over. The read then keeps one goroutine until the file responds; a caller
// that reads a file again and again uses a File, which keeps one goroutine in all.
func Read(ctx context.Context, path string, limit int64) ([]byte, error) {
	return (&File{Path: path, Limit: limit}).Read(ctx)
}

// File is a file that is read again and again. It is safe for concurrent use.
type File struct {
	Path  string
	Limit int64 // bytes; a larger file is an error
	// NoLinks refuses a symbolic link as the last element of the path. Set it for files in directories to
	// which others can write.
	NoLinks bool

	mu  sync.Mutex
	now *reading // that has not ended; nil: none
}

// reading is one read of a file, which may never end.
type reading struct {
	begun time.Time
	late  bool // a caller has given up on it
	done  chan struct{}
	raw   []byte
	err   error
}

// Read reads the file. While an earlier read hangs, it returns ErrHanging at once and starts no other.
func (f *File) Read(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		r, ours := f.start(ctx)
		if r == nil {
			return nil, &fs.PathError{Op: "read", Path: f.Path, Err: ErrHanging}
		}
		select {
		case <-r.done:
			if ours {
				return r.raw, r.err
			} // another caller's read may be older than this call
		case <-ctx.Done():
			f.giveUp(r)
			return nil, &fs.PathError{Op: "read", Path: f.Path, Err: fmt.Errorf("%w since %v", ErrHanging, time.Since(r.begun).Round(time.Millisecond))}
		}
	}
}

// start starts a read, or returns the one under way; nil: that one hangs.
func (f *File) start(ctx context.Context) (r *reading, ours bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now != nil {
		if f.now.late {
			return nil, false
		}
		return f.now, false
	}
	r = &reading{begun: time.Now(), done: make(chan struct{})}
	f.now = r
	deadline, _ := ctx.Deadline()
	go func() {
		r.raw, r.err = read(f.Path, f.Limit, f.NoLinks, deadline)
		f.mu.Lock()
		f.now = nil
		f.mu.Unlock()
		close(r.done)
	}()
	return r, true
}

// giveUp marks a read that its caller no longer waits for.
func (f *File) giveUp(r *reading) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.late = true
}

// read reads a file until the deadline, as far as the kind of file has one: a file of /proc that the kernel
// can be polled for, such as /proc/kmsg, has; a disk has none.
func read(path string, limit int64, noLinks bool, deadline time.Time) ([]byte, error) {
	look := os.Stat
	if noLinks {
		look = os.Lstat
	}
	before, err := look(path) // opening a pipe, a terminal or a device has consequences
	if err != nil {
		return nil, err
	}
	if err := check(path, before, limit); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := check(path, info, limit); err != nil {
		return nil, err
	}
	if noLinks && !os.SameFile(before, info) { // a link took its place since it was looked at
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	f.SetReadDeadline(deadline) //nolint:errcheck // a file on a disk has none
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.EAGAIN):
		return nil, &fs.PathError{Op: "read", Path: path, Err: ErrHanging}
	case err != nil:
		return nil, err
	case int64(len(raw)) > limit:
		return nil, tooLarge(path, limit)
	}
	return raw, nil
}

// check refuses what is not a regular file, or has more bytes than the limit.
func check(path string, info fs.FileInfo, limit int64) error {
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w but %s", ErrNotRegular, kind(info.Mode()))}
	}
	if info.Size() > limit {
		return tooLarge(path, limit)
	}
	return nil
}

func tooLarge(path string, limit int64) error {
	return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: the limit is %d bytes", ErrTooLarge, limit)}
}

// kind names a kind of file.
func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}
