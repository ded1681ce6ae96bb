package slurm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of what is read. A node of 64 GPUs with 64 jobs on each has 4,096 entries; the file of a job has
// some 200 bytes.
const (
	maxFile    = 64 << 10 // bytes of a file
	maxTotal   = 4 << 20  // bytes of all files at one look
	maxNames   = 1 << 20  // names in the directory, most of them not ours
	maxFiles   = 4096     // files of GPUs
	maxJobs    = 256      // of one GPU
	maxEntries = 4096     // in all
	maxWord    = 256      // bytes of a name
)

// settled is how long ago a file must have been written for its last line to be complete when it has no
// end, and for being empty.
const settled = time.Second

// contents are what one look found.
type contents struct {
	met     bool // the directory was there, now or before
	entries []Entry
	ids     map[string][]string // by file
	jobs    map[string]Job      // by number
	faults  []fault
	shared  string // how others can write the directory; empty: they cannot
}

func (c *contents) fault(reason, format string, args ...any) {
	c.faults = append(c.faults, fault{reason, fmt.Errorf("slurm: "+format, args...)})
}

var jobID = regexp.MustCompile(`^[0-9]{1,10}(?:[_+][0-9]{1,10})?$`) // with the task of an array, or the part of a heterogeneous job

// look is one look at the directory.
type look struct {
	*contents
	dir, jobs *os.File // jobs is nil where there are none
	jobsOpen  bool     // jobs was tried
	left      int      // bytes that may still be read
	buffer    []byte
}

// read reads the directory. A file that cannot be read costs itself and is among the faults. A directory
// that never was there has no jobs yet: the prolog of the first one makes it.
func read(path string, before contents, now time.Time) contents {
	c := contents{met: before.met, ids: map[string][]string{}, jobs: map[string]Job{}}
	dir, err := openDir(path)
	if errors.Is(err, fs.ErrNotExist) && !before.met {
		return c
	}
	if err != nil {
		c.fault(unreadable, "%w", err)
		return c
	}
	defer dir.Close() //nolint:errcheck // it was only read
	l := look{contents: &c, dir: dir, left: maxTotal}
	defer l.close()
	if err := l.read(before, now); err != nil {
		c.fault(unreadable, "%w", err)
		return c
	}
	return c
}

// close closes the directory of the jobs.
func (l *look) close() {
	if l.jobs != nil {
		l.jobs.Close() //nolint:errcheck // it was only read
	}
}

func (l *look) read(before contents, now time.Time) error {
	info, err := l.dir.Stat()
	if err != nil {
		return err
	}
	l.met, l.shared = true, shared(info)
	names, err := l.list()
	if err != nil {
		return err
	}
	for _, n := range names { // all of them before the first job, whose details are worth less
		l.ids[n.text] = l.readGPU(n.text, before.ids[n.text], now)
	}
	slices.SortFunc(names, func(a, b name) int { return cmp.Compare(a.text, b.text) })
	for _, n := range names {
		for _, id := range l.ids[n.text] {
			if len(l.entries) == maxEntries {
				l.fault(limit, "%s: more than %d jobs in all", l.dir.Name(), maxEntries)
				return nil
			}
			job, known := l.contents.jobs[id]
			if !known {
				job = l.readJob(id, before.jobs[id])
				l.contents.jobs[id] = job
			}
			l.entries = append(l.entries, Entry{GPU: n.gpu, GPUInstance: n.instance, Job: job})
		}
	}
	return nil
}

// name is the name of a GPU's file: its index, or index.instance.
type name struct {
	text, gpu, instance string
	largest             int // of both numbers
}

// parseName reads the name of a GPU's file, which has one form only.
func parseName(text string) (n name, ok bool) {
	n.text = text
	var cut bool
	n.gpu, n.instance, cut = strings.Cut(text, ".")
	gpu, ok := index(n.gpu)
	if ok && cut {
		n.largest, ok = index(n.instance)
	}
	n.largest = max(n.largest, gpu)
	return n, ok
}

// index returns the number that a text of at most four digits is, without zeros before it.
func index(text string) (n int, ok bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n <= 9999 && strconv.Itoa(n) == text
}

// list returns the names of the GPUs' files, and those of the smallest numbers where there are too many:
// names that no GPU has hide none that has.
func (l *look) list() (names []name, err error) {
	seen, over := 0, false
	trim := func() {
		slices.SortFunc(names, func(a, b name) int {
			return cmp.Or(cmp.Compare(a.largest, b.largest), cmp.Compare(len(a.text), len(b.text)), cmp.Compare(a.text, b.text))
		})
		if len(names) > maxFiles {
			names, over = names[:maxFiles], true
		}
	}
	for err == nil && seen < maxNames {
		var some []string
		some, err = l.dir.Readdirnames(1024)
		seen += len(some)
		for _, text := range some { // others are jobs/, and what a prolog is about to put in place
			if n, ok := parseName(text); ok {
				names = append(names, n)
			}
		}
		if len(names) > 2*maxFiles {
			trim()
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	trim()
	if over {
		l.fault(limit, "%s: more than %d files of GPUs", l.dir.Name(), maxFiles)
	} else if seen >= maxNames {
		l.fault(limit, "%s: more than %d files", l.dir.Name(), maxNames)
	}
	return names, nil
}

// readGPU reads the IDs of a GPU's jobs, each once. Of a file that is being written the beginning of an ID
// is another job's: it is read at the next look, and until then the IDs stay as they were. A line that is
// not an ID is reported by its number alone: it may be of any file.
func (l *look) readGPU(file string, before []string, now time.Time) (ids []string) {
	text, written, err := l.readFile(l.dir, l.shared != "", file)
	switch {
	case errors.Is(err, fs.ErrNotExist): // its last job has ended since it was listed
		return nil
	case err != nil:
		l.fault(reasonOf(err), "%w", err)
		return nil
	}
	if age := now.Sub(written); !bytes.HasSuffix(text, []byte("\n")) && age >= 0 && age < settled {
		return before
	}
	path := filepath.Join(l.dir.Name(), file)
	n, bad, first := 0, 0, 0
	for line := range strings.Lines(string(text)) {
		n++
		id, _, _ := strings.Cut(strings.TrimSpace(line), " ") // what else a prolog adds is its own
		switch {
		case id == "" || slices.Contains(ids, id):
		case !jobID.MatchString(id):
			if bad++; bad == 1 {
				first = n
			}
		case len(ids) == maxJobs:
			l.fault(limit, "%s: more than %d jobs", path, maxJobs)
			return ids
		default:
			ids = append(ids, strings.Clone(id)) // and not the whole file with it
		}
	}
	switch {
	case bad == 1:
		l.fault(malformed, "%s:%d: not a job ID", path, first)
	case bad > 1:
		l.fault(malformed, "%s:%d: not a job ID, nor are %d more lines", path, first, bad-1)
	}
	return ids
}

// readJob reads what the prolog wrote of a job, which is nothing where it writes IDs alone. What was known
// of it stays when its file cannot be read any more.
func (l *look) readJob(id string, before Job) Job {
	job := Job{ID: id}
	if !l.openJobs() {
		return job
	}
	info, err := l.jobs.Stat()
	var text []byte
	if err == nil {
		text, _, err = l.readFile(l.jobs, l.shared != "" || shared(info) != "", id+".json")
	}
	path := filepath.Join(l.jobs.Name(), id+".json")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return job
	case err != nil:
		l.fault(reasonOf(err), "%w", err)
	case !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")):
		l.fault(malformed, "%s: not a JSON object", path)
	default:
		err := json.Unmarshal(text, &job)
		typed, mistyped := errors.AsType[*json.UnmarshalTypeError](err)
		switch { // without the error's own words, which quote the file
		case mistyped:
			l.fault(malformed, "%s: %s is not a string", path, typed.Field)
		case err != nil:
			l.fault(malformed, "%s: not valid JSON", path)
		}
		if err == nil || mistyped { // a word of another type costs itself alone
			for _, w := range []*string{&job.SLUID, &job.User, &job.Account, &job.Partition, &job.QOS, &job.Name} {
				*w = word(*w)
			}
			return job
		}
	}
	before.ID = id
	return before
}

// openJobs opens the directory of the jobs' files once, and reports whether there is one.
func (l *look) openJobs() bool {
	if !l.jobsOpen {
		l.jobsOpen = true
		jobs, err := openDirIn(l.dir, "jobs")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.fault(unreadable, "%w", err)
		}
		l.jobs = jobs
	}
	return l.jobs != nil
}

// word bounds what may become a label, and has a ? for what would disturb a terminal. It keeps none of the
// text that it is cut from.
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
	return strings.Clone(s)
}

var (
	errLarge   = fmt.Errorf("more than %d bytes", maxFile)
	errTotal   = fmt.Errorf("more than %d bytes in all files", maxTotal)
	errNotFile = errors.New("not a regular file")
)

func reasonOf(err error) string {
	if errors.Is(err, errLarge) || errors.Is(err, errTotal) {
		return limit
	}
	return unreadable
}

// readFile returns the text of a file, which is valid until the next call, and when it was written last.
// In a directory that others can write only files that they cannot have put there are read.
func (l *look) readFile(dir *os.File, shared bool, name string) ([]byte, time.Time, error) {
	f, err := openIn(dir, name)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	if !info.Mode().IsRegular() {
		return nil, time.Time{}, fmt.Errorf("%s: %w", f.Name(), errNotFile)
	}
	if why := untrusted(info); shared && why != "" {
		return nil, time.Time{}, fmt.Errorf("%s: others can write the directory, and the file is %s", f.Name(), why)
	}
	if l.buffer == nil {
		l.buffer = make([]byte, maxFile+1)
	}
	n, err := io.ReadFull(f, l.buffer[:min(len(l.buffer), l.left+1)])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, time.Time{}, fmt.Errorf("%s: %w", f.Name(), err)
	}
	switch {
	case n > l.left:
		l.left = 0
		return nil, time.Time{}, fmt.Errorf("%s: %w", f.Name(), errTotal)
	case n > maxFile:
		l.left -= n
		return nil, time.Time{}, fmt.Errorf("%s: %w", f.Name(), errLarge)
	}
	l.left -= n
	return l.buffer[:n], info.ModTime(), nil
}
