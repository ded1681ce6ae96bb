// Package slurm reads the files in which a prolog writes which job was given which GPU.
package slurm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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

// Thing is the name of what an entry gives, as its file has it.
func (e Entry) Thing() string {
	if e.GPUInstance == "" {
		return e.GPU
	}
	return e.GPU + "." + e.GPUInstance
}

// Job is what is known of one. All but its number is there only when the prolog writes it.
type Job struct {
	ID        string `json:"-"`
	SLUID     string `json:"sluid"` // Slurm's own id, which from 26.05 on names the job's control group
	User      string `json:"user"`
	Account   string `json:"account"`
	Partition string `json:"partition"`
	QOS       string `json:"qos"`
	Name      string `json:"name"`
}

// Directory is where the prolog writes: a file for each GPU, named by its index, or index.instance,
// with a job's number on each line, as dcgm-exporter reads them; and beside them jobs/NUMBER.json.
// Its methods may be called by several at once.
type Directory struct {
	Path   string
	Period time.Duration // how often it is read; 0: 5 s
	Logger *slog.Logger  // nil: nothing is logged

	mu     sync.Mutex
	last   contents
	absent []string
	counts map[string]uint64
	said   string
	looked time.Time
	looks  uint64
}

// Why something of the directory could not be taken, as Counts names it.
const (
	unreadable = "unreadable" // the directory, or a file in it; also a directory that is gone
	malformed  = "malformed"  // a line that is no job's number, a job's file that is not as the prolog writes it
	limit      = "limit"      // more than is believed
	absent     = "absent"     // the name of a GPU or MIG instance that no driver lists
)

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
		d.look(time.Now())
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
	return d.last.entries
}

// Job is one of the last look by its number, or where that is empty by its SLUID.
func (d *Directory) Job(id, sluid string) (Job, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.last.entries {
		if id != "" && e.Job.ID == id || id == "" && sluid != "" && e.Job.SLUID == sluid {
			return e.Job, true
		}
	}
	return Job{}, false
}

// Counts are how often something could not be taken, by reason: unreadable, malformed, limit, absent.
// What stays wrong is counted at each look, a file once.
func (d *Directory) Counts() map[string]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := map[string]uint64{unreadable: 0, malformed: 0, limit: 0, absent: 0}
	maps.Copy(out, d.counts)
	return out
}

// State is how a Directory is.
type State struct {
	Path   string
	Looks  uint64    // so far
	Looked time.Time // when last; zero: never
	Err    string    // what could not be taken then; empty: nothing
	Jobs   int       // each on each of its GPUs
	Absent []string  // GPUs and MIG instances that no driver lists
	Shared string    // how users other than root and the exporter's own can write the directory; empty: they cannot
}

// State is that of the last look.
func (d *Directory) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return State{d.Path, d.looks, d.looked, d.said, len(d.last.entries), slices.Clone(d.absent), d.last.shared}
}

// Absent tells which things of the entries no driver lists: who knows the devices calls it with all of
// them, as often as it likes. What is new is logged, and all are counted at each look.
func (d *Directory) Absent(things []string) {
	slices.Sort(things)
	things = slices.Compact(things)
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.Equal(things, d.absent) {
		return
	}
	d.absent = slices.Clone(things)
	if d.Logger == nil {
		return
	}
	if len(things) > 0 {
		d.Logger.Warn("job mapping names what no driver lists", "gpus", strings.Join(things[:min(len(things), mostSaid)], " "), "count", len(things))
	} else {
		d.Logger.Info("all that the job mapping names is there")
	}
}

// mostSaid is how much of one sort a line of the log names.
const mostSaid = 10

// look reads once.
func (d *Directory) look(now time.Time) {
	d.mu.Lock()
	before := d.last
	d.mu.Unlock()
	next := read(d.Path, before, now)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = next
	if d.counts == nil {
		d.counts = map[string]uint64{}
	}
	d.counts[absent] += uint64(len(d.absent))
	for _, f := range next.faults {
		d.counts[f.reason]++
	}
	if next.shared != before.shared && next.shared != "" && d.Logger != nil {
		d.Logger.Warn("users other than root can write the job mapping; only files of root are read", "path", d.Path, "directory", next.shared)
	}
	said := next.String()
	if said != d.said && d.Logger != nil {
		if said != "" {
			d.Logger.Warn("job mapping can not be read in full", "err", said)
		} else {
			d.Logger.Info("job mapping can be read again")
		}
	}
	d.said = said
	d.looked = now
	d.looks++
}

// fault is something that could not be taken, and why.
type fault struct {
	reason string
	err    error
}

// String is what is wrong, empty when nothing is.
func (c *contents) String() string {
	var all []error
	for i, f := range c.faults {
		if i == mostSaid {
			all = append(all, fmt.Errorf("and %d more", len(c.faults)-i))
			break
		}
		all = append(all, f.err)
	}
	if err := errors.Join(all...); err != nil {
		return err.Error()
	}
	return ""
}
