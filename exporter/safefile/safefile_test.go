package safefile

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const limit = 16

// place makes one file of each kind in a directory and returns their paths.
func place(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	errs := []error{
		os.WriteFile(at("file"), []byte("contents"), 0o600),
		os.WriteFile(at("empty"), nil, 0o600),
		os.WriteFile(at("full"), make([]byte, limit), 0o600),
		os.WriteFile(at("large"), make([]byte, limit+1), 0o600),
		os.Mkdir(at("directory"), 0o700),
		syscall.Mkfifo(at("pipe"), 0o600),
		os.Symlink("file", at("link")),
		os.Symlink("pipe", at("link to pipe")),
		os.Symlink("nothing", at("dangling")),
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	huge, err := os.Create(at("huge"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(huge.Truncate(1<<40), huge.Close()); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"zero device": "/dev/zero", "proc file without a size": "/proc/self/stat"}
	for _, name := range []string{"file", "empty", "full", "large", "huge", "directory", "pipe", "link", "link to pipe", "dangling", "missing"} {
		all[name] = at(name)
	}
	return all
}

// Only regular files within the limit are read. Nothing here is waited for, the pipe without a writer included.
func TestRead_TakesRegularFilesOfLimitedSize(t *testing.T) {
	paths := place(t)
	for name, want := range map[string]error{
		"file": nil, "empty": nil, "full": nil, "link": nil, "large": ErrTooLarge, "huge": ErrTooLarge,
		"directory": ErrNotRegular, "pipe": ErrNotRegular, "link to pipe": ErrNotRegular, "zero device": ErrNotRegular,
		"dangling": fs.ErrNotExist, "missing": fs.ErrNotExist, "proc file without a size": ErrTooLarge,
	} {
		raw, err := Read(t.Context(), paths[name], limit)
		if !errors.Is(err, want) || (err != nil) != (want != nil) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), paths[name]) {
			t.Errorf("%s: %q does not name the path", name, err)
		}
		if name == "file" && string(raw) != "contents" {
			t.Errorf("%s: %q", name, raw)
		}
	}
}

func TestFile_NoLinksRefusesLinks(t *testing.T) {
	paths := place(t)
	for name, want := range map[string]error{"file": nil, "link": ErrNotRegular, "dangling": ErrNotRegular, "pipe": ErrNotRegular} {
		if _, err := (&File{Path: paths[name], Limit: limit, NoLinks: true}).Read(t.Context()); !errors.Is(err, want) || (err != nil) != (want != nil) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

// A file of a disk that does not respond costs each caller its patience at the most, and one goroutine in all.
// A hung disk is stood in for by a read that does not end.
func TestFile_HangingFileIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &File{Path: "disk/file", Limit: limit}
		hung := &reading{begun: time.Now(), done: make(chan struct{})}
		f.now = hung
		start := time.Now()
		if _, err := f.Read(t.Context()); !errors.Is(err, ErrHanging) || time.Since(start) != Patience {
			t.Errorf("%v after %v, want ErrHanging after %v", err, time.Since(start), Patience)
		}
		start = time.Now()
		for range 100 {
			if _, err := f.Read(t.Context()); !errors.Is(err, ErrHanging) || f.now != hung {
				t.Fatalf("%v, or another read was started", err)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("100 more callers waited %v, want no wait", took)
		}
		f.now = nil // it responds
		close(hung.done)
		if _, err := f.Read(t.Context()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v once the disk responds, want that there is no such file", err)
		}
	})
}

// A caller's own context ends its wait.
func TestFile_ContextEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &File{Path: "disk/file", now: &reading{begun: time.Now(), done: make(chan struct{})}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := f.Read(ctx); !errors.Is(err, ErrHanging) || time.Since(start) != time.Second {
			t.Errorf("%v after %v, want ErrHanging after 1 s", err, time.Since(start))
		}
	})
}

// Callers at once each get the file as it is.
func TestFile_ConcurrentCallersEachRead(t *testing.T) {
	f := &File{Path: place(t)["file"], Limit: limit}
	done := make(chan error)
	for range 20 {
		go func() {
			raw, err := f.Read(t.Context())
			if err == nil && !bytes.Equal(raw, []byte("contents")) {
				err = errors.New(string(raw))
			}
			done <- err
		}()
	}
	for range 20 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
