package slurm

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
)

// begun is when the tests look first; files are older unless a test makes them younger.
var begun = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// put writes a file of the directory, written last so long before begun.
func put(t *testing.T, dir, name, text string, age time.Duration) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, begun.Add(-age)); err != nil {
		t.Fatal(err)
	}
}

// looked has a directory looked at, and wants these jobs, as thing=number, and these counts.
func looked(t *testing.T, what string, d *Directory, at time.Time, counts map[string]uint64, jobs ...string) {
	t.Helper()
	d.look(at)
	var got []string
	for _, e := range d.Entries() {
		got = append(got, e.Thing()+"="+e.Job.ID)
	}
	if !slices.Equal(got, jobs) {
		t.Errorf("%s: %v, want %v", what, got, jobs)
	}
	for reason, n := range d.Counts() {
		if n != counts[reason] {
			t.Errorf("%s: %s was counted %d times, want %d", what, reason, n, counts[reason])
		}
	}
}

// A file that is being written is not believed: the beginning of a number is the number of another job.
func TestHalfWritten(t *testing.T) {
	dir := t.TempDir()
	d := &Directory{Path: dir}
	put(t, dir, "0", "30214\n", time.Hour)
	put(t, dir, "1", "30", 0)
	put(t, dir, "2", "", 0)
	looked(t, "a number without its end", d, begun, nil, "0=30214")
	put(t, dir, "1", "30215\n", 0)
	looked(t, "written in full", d, begun, nil, "0=30214", "1=30215")
	put(t, dir, "0", "", 0)
	put(t, dir, "1", "30215\n30", 0)
	looked(t, "emptied to be written anew, and one more job begun", d, begun, nil, "0=30214", "1=30215")
	looked(t, "nobody has written any more", d, begun.Add(settled), nil, "1=30215", "1=30")
	put(t, dir, "0", "7", -time.Hour)
	looked(t, "written in the future, as the clock was set back since", d, begun, nil, "0=7", "1=30215", "1=30")
	if err := os.Remove(filepath.Join(dir, "0")); err != nil {
		t.Fatal(err)
	}
	looked(t, "no job has it any more", d, begun.Add(settled), nil, "1=30215", "1=30")
}

// A directory that nobody has made yet is no fault, one that is gone is, and what is in it counts again
// once it is back.
func TestDirectoryVanishes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "jobs")
	log := new(strings.Builder)
	d := &Directory{Path: dir, Logger: slog.New(slog.NewTextHandler(log, nil))}
	looked(t, "before the first job", d, begun, nil)
	put(t, dir, "0", "7\n", time.Hour)
	looked(t, "with a job", d, begun, nil, "0=7")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	looked(t, "gone", d, begun, map[string]uint64{"unreadable": 1})
	looked(t, "still gone", d, begun, map[string]uint64{"unreadable": 2})
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	looked(t, "a file in its place", d, begun, map[string]uint64{"unreadable": 3})
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	looked(t, "back", d, begun, map[string]uint64{"unreadable": 3}, "0=7")
	if n := strings.Count(log.String(), "can not be read in full"); n != 2 || strings.Count(log.String(), "can be read again") != 1 {
		t.Errorf("said %d times that it can not be read, want once for each reason:\n%s", n, log)
	}
}

// Whatever is in the files costs itself, and is counted once for each file and look.
func TestHostile(t *testing.T) {
	var many, all strings.Builder
	for i := range 2 * maxJobs {
		many.WriteString(strconv.Itoa(i+1) + "\n")
	}
	for range 10 << 20 / 8 {
		all.WriteString("\xff\x00\x1b[2J\n\"")
	}
	for name, c := range map[string]struct {
		text   string
		reason string
		n      int // jobs
	}{
		"control characters":  {"\x1b[31m7\n8\x00\n\r\n9\r\n", malformed, 1},
		"invalid UTF-8":       {"\xff\xfe\n7\n", malformed, 1},
		"a name and quotes":   {"7\"} 1\n# HELP x\n8\n", malformed, 1},
		"a path":              {"../../etc/passwd\n7\n", malformed, 1},
		"only NUL":            {strings.Repeat("\x00", 1000), malformed, 0},
		"10 MB":               {all.String(), limit, 0},
		"an endless line":     {strings.Repeat("7", maxFile), malformed, 0},
		"too many jobs":       {many.String(), limit, maxJobs},
		"many lines the same": {strings.Repeat("7\n", 10_000), "", 1},
	} {
		dir := t.TempDir()
		put(t, dir, "0", c.text, time.Hour)
		put(t, dir, "1", "30214\n", time.Hour)
		d := &Directory{Path: dir}
		d.look(begun)
		if got := len(d.Entries()); got != c.n+1 {
			t.Errorf("%s: %d jobs, want %d", name, got, c.n+1)
		}
		sum := uint64(0)
		for _, n := range d.Counts() {
			sum += n
		}
		if c.reason == "" && sum != 0 || c.reason != "" && (sum != 1 || d.Counts()[c.reason] != 1) {
			t.Errorf("%s: counted %v, want one of %q", name, d.Counts(), c.reason)
		}
		for _, r := range d.last.String() {
			if r < ' ' || r == 0x7f {
				t.Errorf("%s: the log would be told %q", name, d.last.String())
				break
			}
		}
	}
}

// What stands in the directory beside files is not waited for.
func TestNotFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "0", "7\n", time.Hour)
	if err := syscall.Mkfifo(filepath.Join(dir, "1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "2"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "3")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "4")); err != nil {
		t.Fatal(err)
	}
	looked(t, "a pipe, a directory, a device, a link to nothing", &Directory{Path: dir}, begun, map[string]uint64{"unreadable": 4}, "0=7")
}

// What is written of a job costs no more than the words that are not as they should be.
func TestJobFile(t *testing.T) {
	whole := Job{ID: "7", User: "ada", Account: "physics"}
	for name, c := range map[string]struct {
		text, reason string
		want         Job
	}{
		"as it should be":            {`{"user": "ada", "account": "physics", "more": [1]}`, "", whole},
		"not there":                  {"", "", Job{ID: "7"}},
		"a word of another type":     {`{"user": 1001, "account": "physics"}`, malformed, Job{ID: "7", Account: "physics"}},
		"a list":                     {`["ada"]`, malformed, Job{ID: "7"}},
		"nothing":                    {`null`, malformed, Job{ID: "7"}},
		"a word":                     {`"ada"`, malformed, Job{ID: "7"}},
		"half written":               {`{"user": "ada", "acc`, malformed, Job{ID: "7"}},
		"two of them":                {`{"user": "ada"} {"user": "eve"}`, malformed, Job{ID: "7"}},
		"no JSON":                    {"\xff\x00", malformed, Job{ID: "7"}},
		"its own number":             {`{"ID": "9", "id": "9", "user": "ada", "account": "physics"}`, "", whole},
		"control characters":         {`{"user": "a\u001b[2J\nda"}`, "", Job{ID: "7", User: "a?[2J?da"}},
		"quotes":                     {`{"user": "a\"}\\"}`, "", Job{ID: "7", User: `a"}\`}},
		"invalid UTF-8":              {"{\"user\": \"a\xffda\"}", "", Job{ID: "7", User: "a\ufffdda"}},
		"writing from right to left": {`{"user": "a\u202eda"}`, "", Job{ID: "7", User: "a?da"}},
		"a long name":                {`{"user": "` + strings.Repeat("ü", 10_000) + `"}`, "", Job{ID: "7", User: strings.Repeat("ü", maxWord/2)}},
		"10 MB":                      {`{"user": "` + strings.Repeat("x", 10<<20) + `"}`, limit, Job{ID: "7"}},
		"deep":                       {strings.Repeat(`{"a":`, 11_000), malformed, Job{ID: "7"}},
	} {
		dir := t.TempDir()
		put(t, dir, "0", "7\n", time.Hour)
		if c.text != "" {
			put(t, dir, "jobs/7.json", c.text, time.Hour)
		}
		d := &Directory{Path: dir}
		d.look(begun)
		if got, ok := d.Job("7", ""); !ok || got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		want := map[string]uint64{"unreadable": 0, "malformed": 0, "limit": 0, "absent": 0}
		if c.reason != "" {
			want[c.reason] = 1
		}
		if got := d.Counts(); !maps.Equal(got, want) {
			t.Errorf("%s: counted %v, want %v", name, got, want)
		}
	}
	dir := t.TempDir()
	put(t, dir, "0", "7\n", time.Hour)
	put(t, dir, "jobs/7.json", `{"user": "ada", "sluid": "s5K1KKYAYG5D00"}`, time.Hour)
	d := &Directory{Path: dir}
	d.look(begun)
	put(t, dir, "jobs/7.json", `{"user": "ad`, time.Hour)
	d.look(begun)
	if got, ok := d.Job("", "s5K1KKYAYG5D00"); !ok || got.User != "ada" || got.ID != "7" {
		t.Errorf("written over: %+v, %v, want what was known before", got, ok)
	}
	for _, ask := range [][2]string{{"8", ""}, {"", ""}, {"", "s0000000000000"}, {"8", "s5K1KKYAYG5D00"}} {
		if got, ok := d.Job(ask[0], ask[1]); ok {
			t.Errorf("job %q or %q: %+v", ask[0], ask[1], got)
		}
	}
}

// GPUs that nobody has are named in the log when that changes, and counted at each look.
func TestAbsent(t *testing.T) {
	log := new(strings.Builder)
	d := &Directory{Path: t.TempDir(), Logger: slog.New(slog.NewTextHandler(log, nil))}
	for range 3 {
		d.Absent([]string{"9", "2.7", "9"})
		d.look(begun)
	}
	d.Absent([]string{"9"})
	d.Absent(nil)
	d.Absent(nil)
	d.look(begun)
	if got := d.Counts()["absent"]; got != 6 {
		t.Errorf("counted %d, want 2 things at each of 3 looks", got)
	}
	for said, want := range map[string]int{`gpus="2.7 9" count=2`: 1, "gpus=9 count=1": 1, "is there": 1, "\n": 3} {
		if n := strings.Count(log.String(), said); n != want {
			t.Errorf("%q stands %d times in the log, want %d:\n%s", said, n, want, log)
		}
	}
}

// The directory is read on its period, and by nobody once the context has ended.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := &Directory{Path: dir}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { d.Run(ctx); close(done) }()
		synctest.Wait()
		if err := os.WriteFile(filepath.Join(dir, "0"), []byte("7\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if n := len(d.Entries()); n != 0 {
			t.Errorf("%d entries before the next look", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := len(d.Entries()); n != 1 {
			t.Errorf("%d entries after it, want 1", n)
		}
		cancel()
		<-done
	})
}

// Pictures and the self metrics ask while it is read.
func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "0", "7\n", time.Hour)
	d := &Directory{Path: dir, Logger: slog.New(slog.DiscardHandler)}
	d.look(begun)
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for i := range 50 {
				d.look(begun)
				d.Absent([]string{strconv.Itoa(i % 2), strconv.Itoa(n)})
				d.Counts()
				if _, ok := d.Job("7", ""); !ok || len(d.Entries()) != 1 {
					t.Error("job 7 is not there")
				}
			}
		})
	}
	all.Wait()
}

// Whatever stands in the file of a job, its words can be labels.
func FuzzJob(f *testing.F) {
	f.Add([]byte(`{"user": "ada", "account": "physics", "sluid": "s5K1KKYAYG5D00"}`))
	f.Add([]byte(`{"user": 7, "name": "\u001b"}`))
	dir := f.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "jobs"), 0o700); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "0"), []byte("7\n"), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, "jobs", "7.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		c := read(dir, contents{}, time.Now().Add(time.Hour))
		job := c.jobs["7"]
		for _, w := range []string{job.SLUID, job.User, job.Account, job.Partition, job.QOS, job.Name} {
			if len(w) > maxWord || strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q", w)
			}
		}
		if job.ID != "7" {
			t.Errorf("its number is %q", job.ID)
		}
	})
}
