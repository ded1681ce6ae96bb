package slurm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of what is believed.
const (
	maxFile    = 64 << 10 // bytes
	maxFiles   = 4096     // in the directory
	maxJobs    = 256      // of one GPU
	maxEntries = 4096     // in all
	maxWord    = 256      // bytes of a name
)

// settled is how long ago a file must have been written for its last line to be believed whole when
// it has no end, and for being empty.
const settled = time.Second

// contents are what one look found.
type contents struct {
	met     bool // the directory was there, now or before
	entries []Entry
	ids     map[string][]string // by file
	jobs    map[string]Job      // by number
	faults  []fault
}

func (c *contents) fault(reason, format string, args ...any) {
	c.faults = append(c.faults, fault{reason, fmt.Errorf("slurm: "+format, args...)})
}

var (
	fileName = regexp.MustCompile(`^(\d{1,4})(?:\.(\d{1,4}))?$`)
	jobID    = regexp.MustCompile(`^[0-9]{1,10}(?:[_+][0-9]{1,10})?$`) // with the task of an array, or the part of a heterogeneous job
)

// read reads the directory. What can not be taken costs itself and is among the faults. A directory
// that never was there says that there are no jobs yet: the prolog of the first one makes it.
func read(dir string, before contents, now time.Time) contents {
	c := contents{met: before.met, ids: map[string][]string{}, jobs: map[string]Job{}}
	names, err := list(dir)
	if errors.Is(err, fs.ErrNotExist) && !before.met {
		return c
	}
	if err != nil {
		c.fault(unreadable, "%w", err)
		return c
	}
	c.met = true
	if len(names) > maxFiles {
		c.fault(limit, "%s: more than %d files", dir, maxFiles)
		names = names[:maxFiles]
	}
	slices.Sort(names)
	for _, name := range names {
		m := fileName.FindStringSubmatch(name)
		if m == nil {
			continue // jobs/, and what a prolog is about to put in place
		}
		ids := c.readGPU(filepath.Join(dir, name), before.ids[name], now)
		c.ids[name] = ids
		for _, id := range ids {
			if len(c.entries) == maxEntries {
				c.fault(limit, "%s: more than %d jobs in all", dir, maxEntries)
				return c
			}
			job, known := c.jobs[id]
			if !known {
				job = c.readJob(dir, id, before.jobs[id])
				c.jobs[id] = job
			}
			c.entries = append(c.entries, Entry{GPU: m[1], GPUInstance: m[2], Job: job})
		}
	}
	return c
}

// list returns the names in a directory, in no order, and no more than one above the limit.
func list(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	names, err := f.Readdirnames(maxFiles + 1)
	if errors.Is(err, io.EOF) { // there are none
		err = nil
	}
	return names, err
}

// readGPU reads the numbers of a GPU's jobs, each once. Of a file that is being written the beginning
// of a number is another job's: it is read at the next look, and until then stays what it was.
func (c *contents) readGPU(path string, before []string, now time.Time) (ids []string) {
	text, written, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // its last job has ended since it was listed
		return nil
	case err != nil:
		c.fault(reasonOf(err), "%w", err)
		return nil
	}
	if age := now.Sub(written); !bytes.HasSuffix(text, []byte("\n")) && age >= 0 && age < settled {
		return before
	}
	n, bad, worst := 0, 0, ""
	for line := range strings.Lines(string(text)) {
		n++
		id, _, _ := strings.Cut(strings.TrimSpace(line), " ") // what else a prolog adds is its own
		switch {
		case id == "" || slices.Contains(ids, id):
		case !jobID.MatchString(id):
			if bad++; bad == 1 {
				worst = fmt.Sprintf("%s:%d: %q is no job's number", path, n, word(id))
			}
		case len(ids) == maxJobs:
			c.fault(limit, "%s: more than %d jobs", path, maxJobs)
			return ids
		default:
			ids = append(ids, id)
		}
	}
	switch {
	case bad == 1:
		c.fault(malformed, "%s", worst)
	case bad > 1:
		c.fault(malformed, "%s, nor are %d more lines", worst, bad-1)
	}
	return ids
}

// readJob reads what the prolog wrote of a job, which is nothing where it writes numbers alone. What
// was known of it stays when its file can not be read any more.
func (c *contents) readJob(dir, id string, before Job) Job {
	job := Job{ID: id}
	path := filepath.Join(dir, "jobs", id+".json")
	text, _, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return job
	case err != nil:
		c.fault(reasonOf(err), "%w", err)
	case !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")):
		c.fault(malformed, "%s: is no object", path)
	default:
		err := json.Unmarshal(text, &job)
		if err != nil {
			c.fault(malformed, "%s: %w", path, err)
		}
		// A word of another type costs itself alone.
		if _, typed := errors.AsType[*json.UnmarshalTypeError](err); err == nil || typed {
			for _, w := range []*string{&job.SLUID, &job.User, &job.Account, &job.Partition, &job.QOS, &job.Name} {
				*w = word(*w)
			}
			return job
		}
	}
	before.ID = id
	return before
}

// word bounds what may become a label, and has a ? for what would disturb a terminal.
func word(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s[:min(len(s), 2*maxWord)])
	for len(s) > maxWord {
		_, last := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-last]
	}
	return s
}

var (
	errLarge   = fmt.Errorf("more than %d bytes", maxFile)
	errNotFile = errors.New("is no file")
)

func reasonOf(err error) string {
	if errors.Is(err, errLarge) {
		return limit
	}
	return unreadable
}

// readFile reads a file, and when it was written last.
func readFile(path string) ([]byte, time.Time, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for its writer
	if err != nil {
		return nil, time.Time{}, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	if !info.Mode().IsRegular() {
		return nil, time.Time{}, fmt.Errorf("%s: %w", path, errNotFile)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, time.Time{}, err
	}
	if len(text) > maxFile {
		return nil, time.Time{}, fmt.Errorf("%s: %w", path, errLarge)
	}
	return text, info.ModTime(), nil
}
