// Package slurm reads the files in which a prolog writes which job was given which GPU.
package slurm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Entry is one GPU, or one MIG instance of it, that a job was given.
type Entry struct {
	GPU         string // the driver's index, as Slurm numbers it
	GPUInstance string // empty for the whole GPU
	Job         Job
}

// Job is what is known of one. All but its number is there only when the prolog writes it.
type Job struct {
	ID        string `json:"-"`
	User      string `json:"user"`
	Account   string `json:"account"`
	Partition string `json:"partition"`
	QOS       string `json:"qos"`
	Name      string `json:"name"`
}

// Limits of what is believed.
const (
	maxFile  = 64 << 10
	maxFiles = 4096
	maxWord  = 256
)

// Directory is where the prolog writes: a file for each GPU, named by its index, or index.instance,
// with a job's number on each line, as dcgm-exporter reads them; and beside them jobs/NUMBER.json.
type Directory struct {
	Path   string
	Period time.Duration // how often it is read; 0: 5 s
	Logger *slog.Logger  // nil: nothing is logged

	mu      sync.Mutex
	entries []Entry
	faults  uint64
	said    string
}

// Run reads the directory again and again until the context ends. Nothing waits for a disk that hangs
// but this.
func (d *Directory) Run(ctx context.Context) {
	period := d.Period
	if period == 0 {
		period = 5 * time.Second
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		d.look()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Entries are those of the last look.
func (d *Directory) Entries() []Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries
}

// Faults counts what could not be read or understood.
func (d *Directory) Faults() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.faults
}

// look reads once.
func (d *Directory) look() {
	entries, err := Read(d.Path)
	d.mu.Lock()
	defer d.mu.Unlock()
	said := ""
	if err != nil {
		d.faults++
		said = err.Error()
	}
	if said != d.said && d.Logger != nil {
		if err != nil {
			d.Logger.Warn("job mapping can not be read in full", "err", err)
		} else {
			d.Logger.Info("job mapping can be read again")
		}
	}
	d.said = said
	d.entries = entries
}

var (
	fileName = regexp.MustCompile(`^(\d{1,4})(?:\.(\d{1,4}))?$`)
	jobID    = regexp.MustCompile(`^[0-9]{1,10}(?:[_+][0-9]{1,10})?$`) // with the task of an array, or the part of a heterogeneous job
)

// Read reads the directory. What can not be read or understood costs itself; the error names it, and
// the rest is returned with it. A directory that is not there says that there are no jobs.
func Read(dir string) ([]Entry, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("slurm: %w", err)
	}
	var entries []Entry
	var faults []error
	jobs := map[string]Job{}
	for i, f := range files {
		if i == maxFiles {
			faults = append(faults, fmt.Errorf("slurm: %s: more than %d files", dir, maxFiles))
			break
		}
		m := fileName.FindStringSubmatch(f.Name())
		if m == nil || f.IsDir() {
			continue // jobs/, and what a prolog is about to put in place
		}
		ids, err := readJobs(filepath.Join(dir, f.Name()))
		if err != nil {
			faults = append(faults, err)
		}
		for _, id := range ids {
			job, known := jobs[id]
			if !known {
				if job, err = readJob(dir, id); err != nil {
					faults = append(faults, err)
				}
				jobs[id] = job
			}
			entries = append(entries, Entry{GPU: m[1], GPUInstance: m[2], Job: job})
		}
	}
	return entries, errors.Join(faults...)
}

// readJobs reads the numbers of a GPU's jobs, each once.
func readJobs(path string) (ids []string, err error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	var faults []error
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		id, _, _ := strings.Cut(strings.TrimSpace(line), " ") // what else a prolog adds is its own
		switch {
		case id == "":
		case !jobID.MatchString(id):
			faults = append(faults, fmt.Errorf("slurm: %s:%d: %q is no job's number", path, n, cut(id)))
		case !slices.Contains(ids, id):
			ids = append(ids, id)
		}
	}
	return ids, errors.Join(faults...)
}

// readJob reads what the prolog wrote of a job, which is nothing where it writes numbers alone.
func readJob(dir, id string) (Job, error) {
	job := Job{ID: id}
	path := filepath.Join(dir, "jobs", id+".json")
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return job, nil
	}
	if err != nil {
		return job, err
	}
	said := Job{}
	if err := json.Unmarshal(text, &said); err != nil {
		return job, fmt.Errorf("slurm: %s: %w", path, err)
	}
	said.ID = id
	for _, word := range []*string{&said.User, &said.Account, &said.Partition, &said.QOS, &said.Name} {
		*word = cut(*word)
	}
	return said, nil
}

// cut bounds what may become a label.
func cut(s string) string {
	if len(s) > maxWord {
		s = s[:maxWord]
	}
	return strings.ToValidUTF8(s, "")
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("slurm: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("slurm: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("slurm: %s: is no file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("slurm: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("slurm: %s: more than %d bytes", path, maxFile)
	}
	return text, nil
}
