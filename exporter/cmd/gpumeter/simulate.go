package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/safefile"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/source/sim"
)

// simulate returns the source that simulates a node which has been running for some time.
func simulate(c config.Node, node string, age time.Duration, tenants *sim.Tenants, log *slog.Logger) (source.Source, error) {
	sc := sim.Config{Node: node, Tenants: tenants, Seed: c.SimulateSeed, Age: age, Hold: c.WorkloadHold}
	if c.SimulateFaults != "" {
		f := &faultFile{file: safefile.File{Path: c.SimulateFaults, Limit: maxFaults}, log: log}
		sc.Faults = f.read
	}
	s, err := sim.New(sc)
	return s, config.Refuse("simulate", err)
}

// maxFaults is the largest size of a file of faults, in bytes.
const maxFaults = 4096

// faultFile is a file with the names of the faults that are requested.
type faultFile struct {
	file safefile.File
	log  *slog.Logger

	mu     sync.Mutex
	logged string // what was logged last
}

// read returns the faults that the file names now. A file that does not exist names none.
func (f *faultFile) read() sim.Faults {
	raw, err := f.file.Read(context.Background())
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = nil, nil
	}
	text := string(raw)
	faults, mistakes := sim.ParseFaults(text)
	err = errors.Join(err, mistakes)
	switch now := cmp.Or(errorText(err), text); {
	case !f.isNew(now):
	case err != nil:
		f.log.Warn("simulated faults", "file", f.file.Path, "err", err)
	default:
		f.log.Info("simulated faults", "file", f.file.Path, "faults", text)
	}
	return faults
}

// isNew reports whether a text is not the one that was logged last.
func (f *faultFile) isNew(text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := text != f.logged
	f.logged = text
	return changed
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
