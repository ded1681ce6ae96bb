package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/source/sim"
)

// simulate returns the source that simulates a node which has been running for some time.
func simulate(c config.Node, node string, age time.Duration, tenants *sim.Tenants, log *slog.Logger) (source.Source, error) {
	sc := sim.Config{Node: node, Tenants: tenants, Seed: c.SimulateSeed, Age: age, Hold: c.WorkloadHold}
	if c.SimulateFaults != "" {
		f := &faultFile{path: c.SimulateFaults, log: log}
		sc.Faults = f.read
	}
	s, err := sim.New(sc)
	return s, config.Refuse("simulate", err)
}

// faultFile is a file with the names of the faults that hold.
type faultFile struct {
	path string
	log  *slog.Logger
	said string // what was logged of it last
}

// read tells what it says now; one that is not there says nothing. It is called by one at a time.
func (f *faultFile) read() sim.Faults {
	text, err := readFaults(f.path)
	faults, mistakes := sim.ParseFaults(text)
	err = errors.Join(err, mistakes)
	now := text
	if err != nil {
		now = err.Error()
	}
	if now != f.said {
		f.said = now
		if err != nil {
			f.log.Warn("simulated faults", "file", f.path, "err", err)
		} else {
			f.log.Info("simulated faults", "file", f.path, "faults", text)
		}
	}
	return faults
}

func readFaults(path string) (string, error) {
	const most = 4096
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("faults: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("faults: %w", err)
	case len(text) > most:
		return "", fmt.Errorf("faults: %s: more than %d bytes", path, most)
	}
	return string(text), nil
}
