package kernellog

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// isDevice says whether a file is /dev/kmsg by any name: character device 1, 11. Containers have
// been given a terminal or /dev/null under that name.
func isDevice(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && unix.Major(stat.Rdev) == 1 && unix.Minor(stat.Rdev) == 11
}

// running is how long the machine has been running, by the clock the log's is meant to follow.
func running() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// device reads /dev/kmsg, which gives one record a read.
type device struct {
	f      *os.File
	conn   syscall.RawConn
	buffer []byte
	waited []byte // what waiting brought; nil: nothing
}

func openDevice(path string) (*device, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // so that the runtime waits, and can be told to stop
	if err != nil {
		return nil, err
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &device{f: f, conn: conn, buffer: make([]byte, maxRecord)}, nil
}

// skip goes to the end.
func (d *device) skip() error {
	_, err := d.f.Seek(0, io.SeekEnd)
	return err
}

func (d *device) next() (line []byte, err error) {
	if line, d.waited = d.waited, nil; line != nil {
		return line, nil
	}
	failed := d.conn.Read(func(fd uintptr) bool {
		line, err = d.read(int(fd))
		return true
	})
	return line, errors.Join(failed, err)
}

// read asks for one record without waiting; nil: there is none.
func (d *device) read(fd int) ([]byte, error) {
	for {
		n, err := unix.Read(fd, d.buffer)
		switch {
		case err == nil && n > 0:
			return d.buffer[:n], nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EPIPE): // what was next is overwritten; the sequence tells how much
		case errors.Is(err, unix.EINVAL): // a record too long for the buffer is passed over
			return []byte{}, nil
		case errors.Is(err, unix.EAGAIN):
			return nil, nil
		case err == nil:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, os.NewSyscallError("read", err)
		}
	}
}

// wait reads, since a record that comes before the runtime waits would not wake it.
func (d *device) wait(ctx context.Context, until time.Time) error {
	if err := d.f.SetReadDeadline(until); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		d.f.SetReadDeadline(time.Unix(0, 1)) //nolint:errcheck // it could be set before
	})
	defer stop()
	var err error
	failed := d.conn.Read(func(fd uintptr) bool {
		d.waited, err = d.read(int(fd))
		return d.waited != nil || err != nil
	})
	if errors.Is(failed, os.ErrDeadlineExceeded) {
		failed = nil
	}
	return errors.Join(failed, err)
}

func (d *device) Close() error { return d.f.Close() }
