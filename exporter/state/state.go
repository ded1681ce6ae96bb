// Package state keeps small facts in files, for the next run of the exporter.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
)

// maxFile is far above what is kept, so that a file that is not ours is not read whole.
const maxFile = 4 << 20

// Store is a directory of JSON files, one a fact. The empty Store keeps nothing.
type Store struct {
	directory string
	faults    *atomic.Uint64
}

// Open returns the store in a directory, which is made when it is not there. Without a directory
// nothing is kept.
func Open(directory string) (Store, error) {
	if directory == "" {
		return Store{}, nil
	}
	if err := os.MkdirAll(directory, 0o750); err != nil {
		return Store{}, fmt.Errorf("state: %w", err)
	}
	return Store{directory, new(atomic.Uint64)}, nil
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
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("state: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return false, fmt.Errorf("state: %w", err)
	}
	if len(raw) > maxFile {
		return false, fmt.Errorf("state: %s: more than %d bytes", path, maxFile)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return false, fmt.Errorf("state: %s: %w", path, err)
	}
	return true, nil
}

// Save keeps a fact under the name. What was kept before stays whole until the new file is: a full
// disk or a power cut costs no more than this fact.
func (s Store) Save(name string, fact any) (err error) {
	if !s.Keeps() {
		return nil
	}
	defer func() { s.count(err) }()
	raw, err := json.MarshalIndent(fact, "", "  ")
	if err != nil {
		return fmt.Errorf("state: %s: %w", name, err)
	}
	next, err := os.CreateTemp(s.directory, name+".*.next")
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	defer os.Remove(next.Name()) //nolint:errcheck // gone when all went well
	_, err = next.Write(append(raw, '\n'))
	err = errors.Join(err, next.Sync(), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), s.path(name))
	}
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

func (s Store) count(err error) {
	if err != nil {
		s.faults.Add(1)
	}
}

func (s Store) path(name string) string { return filepath.Join(s.directory, name+".json") }
