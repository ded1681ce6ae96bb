// Package state keeps small facts in files, for the next run of the exporter.
package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/gpumeter/gpumeter/exporter/safefile"
)

// maxFile is far above what is kept, so that a file that is not ours is not read whole.
const maxFile = 4 << 20

// ErrHanging is the error of a state directory that does not respond.
var ErrHanging = errors.New("the state directory does not respond")

// Store is a directory of JSON files, one a fact. The empty Store keeps nothing. No method waits longer than
// safefile.Patience for a disk that hangs. A Store is safe for concurrent use.
type Store struct {
	directory string
	faults    *atomic.Uint64
	disk      *disk
}

// Open returns the store in a directory, which is made when it is not there. Without a directory
// nothing is kept. When the directory does not respond, Open returns ErrHanging and a store that works as soon
// as the directory responds.
func Open(directory string) (Store, error) {
	if directory == "" {
		return Store{}, nil
	}
	s := Store{directory, new(atomic.Uint64), newDisk()}
	err := s.disk.do(func() error { return os.MkdirAll(directory, 0o750) })
	switch {
	case errors.Is(err, ErrHanging):
		s.count(err)
		return s, fmt.Errorf("state: %s: %w", directory, err)
	case err != nil:
		return Store{}, fmt.Errorf("state: %w", err)
	}
	return s, nil
}

// Keeps says whether anything is kept.
func (s Store) Keeps() bool { return s.directory != "" }

// Faults counts the files that could not be read or written, since the store was opened.
func (s Store) Faults() uint64 {
	if !s.Keeps() {
		return 0
	}
	return s.faults.Load()
}

// Load reads what was saved under the name, and says whether there was anything. A file that can
// not be read is left where it is for someone to look at; the next Save replaces it.
func (s Store) Load(name string, into any) (there bool, err error) {
	if !s.Keeps() {
		return false, nil
	}
	defer func() { s.count(err) }()
	path := s.path(name)
	if s.disk.hangs() {
		return false, fmt.Errorf("state: %s: %w", path, ErrHanging)
	}
	file := safefile.File{Path: path, Limit: maxFile, NoLinks: true}
	raw, err := file.Read(context.Background())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("state: %w", err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return false, fmt.Errorf("state: %s: %w", path, err)
	}
	return true, nil
}

// Save keeps a fact under the name. What was kept before stays whole until the new file is: a full
// disk or a power cut costs no more than this fact. The fact is not read after Save returns. When the
// directory does not respond, Save returns ErrHanging, and the fact may yet be saved.
func (s Store) Save(name string, fact any) (err error) {
	if !s.Keeps() {
		return nil
	}
	defer func() { s.count(err) }()
	raw, err := json.MarshalIndent(fact, "", "  ")
	if err != nil {
		return fmt.Errorf("state: %s: %w", name, err)
	}
	if err := s.disk.do(func() error { return s.replace(name, append(raw, '\n')) }); err != nil {
		if errors.Is(err, ErrHanging) {
			return fmt.Errorf("state: %s: %w", s.path(name), err)
		}
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

// replace puts a new file in place of the old one.
func (s Store) replace(name string, raw []byte) error {
	next, err := os.CreateTemp(s.directory, name+".*.next")
	if err != nil {
		return err
	}
	defer os.Remove(next.Name()) //nolint:errcheck // gone when all went well
	_, err = next.Write(raw)
	err = errors.Join(err, next.Sync(), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), s.path(name))
	}
	return err
}

func (s Store) count(err error) {
	if err != nil {
		s.faults.Add(1)
	}
}

func (s Store) path(name string) string { return filepath.Join(s.directory, name+".json") }
