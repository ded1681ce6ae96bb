package kernellog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

const (
	// maxRecord is above what the kernel makes of one record: CONSOLE_EXT_LOG_MAX is 8192.
	maxRecord = 16 << 10
	// lookAgain is after how long a file is looked at again that had nothing new.
	lookAgain = 250 * time.Millisecond
)

// file follows a file as it grows, also when it is cut short or another takes its name.
type file struct {
	path   string
	f      *os.File
	at     int64 // how much of it was read
	moved  bool  // another has its name; this one is read to its end
	buffer []byte
	unread []byte // of the buffer
	long   bool   // the line that comes is the rest of one that is too long
}

func openFile(path string) (*file, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &file{path: path, f: f, buffer: make([]byte, maxRecord)}, nil
}

// skip goes to the end.
func (f *file) skip() (err error) {
	f.at, err = f.f.Seek(0, io.SeekEnd)
	return err
}

// next returns a whole line; one that is too long is empty, and so of no known form.
func (f *file) next() ([]byte, error) {
	for {
		if line, rest, whole := bytes.Cut(f.unread, []byte("\n")); whole {
			f.unread = rest
			if f.long {
				f.long = false
				return []byte{}, nil
			}
			return line, nil
		}
		if len(f.unread) == len(f.buffer) {
			f.long, f.unread = true, nil
		}
		n := copy(f.buffer, f.unread)
		more, err := f.f.Read(f.buffer[n:])
		f.at += int64(more)
		f.unread = f.buffer[:n+more]
		if more > 0 {
			continue
		}
		if !errors.Is(err, io.EOF) {
			return nil, err
		}
		if again, err := f.replaced(); !again || err != nil {
			return nil, err
		}
	}
}

// replaced looks, at the end of the file, whether there is another to read, or this one anew.
func (f *file) replaced() (bool, error) {
	here, err := f.f.Stat()
	if err != nil {
		return false, err
	}
	if here.Size() < f.at {
		f.unread, f.long, f.at = nil, false, 0
		_, err := f.f.Seek(0, io.SeekStart)
		return true, err
	}
	there, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // it may come
	}
	if err != nil || os.SameFile(here, there) {
		return false, err
	}
	if !f.moved { // its last lines may have been written since its end was met
		f.moved = true
		return true, nil
	}
	next, err := openFile(f.path)
	if err != nil {
		return false, err
	}
	err = f.f.Close()
	*f = *next
	return true, err
}

// wait sleeps: a file does not tell when it grows.
func (f *file) wait(ctx context.Context, until time.Time) error {
	d := lookAgain
	if !until.IsZero() {
		d = min(d, max(time.Until(until), time.Millisecond))
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
	return nil
}

func (f *file) Close() error { return f.f.Close() }
