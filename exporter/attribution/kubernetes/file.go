package kubernetes

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// watched is a file that is looked at now and then; a look costs one system call.
type watched struct {
	path string
	last fs.FileInfo // nil: it was not there
}

// changed says whether the file is another, or has other contents, than at the last look.
func (w *watched) changed() bool {
	was := w.last
	w.last = nil
	if info, err := os.Stat(w.path); err == nil {
		w.last = info
	}
	if was == nil || w.last == nil {
		return (was == nil) != (w.last == nil)
	}
	return !same(was, w.last)
}

// same says whether two looks saw the same file with the same contents. The number of a file that is
// gone is soon another's, so its time counts too.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// readAll reads no more than the limit.
func readAll(r io.Reader, name string, most int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(raw)) > most {
		err = fmt.Errorf("%s: %w: %d bytes", name, errTooLarge, most)
	}
	return raw, err
}
