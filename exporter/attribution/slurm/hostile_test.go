package slurm

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// saying returns a directory, and everything that it logs and reports of itself.
func saying(path string) (*Directory, func() string) {
	log := new(strings.Builder)
	d := &Directory{Path: path, Logger: slog.New(slog.NewTextHandler(log, nil))}
	return d, func() string { return fmt.Sprintf("%s %+v", log, d.State()) }
}

// A link is not followed, and nothing of what it names is shown: neither of a file with secrets, nor of a file
// that would block, nor of a job's file elsewhere.
func TestDirectory_FollowsNoLink(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	secret := filepath.Join(elsewhere, "shadow")
	put(t, elsewhere, "shadow", "root:$6$SALT$verysecrethash:19000:0:99999:7:::\n", time.Hour)
	put(t, elsewhere, "any.json", `{"user": "root", "account": "secret"}`, time.Hour)
	put(t, elsewhere, "jobs/78.json", `{"user": "eve"}`, time.Hour)
	put(t, dir, "3", "77\n", time.Hour)
	put(t, dir, "jobs/x", "", time.Hour)
	for link, to := range map[string]string{"0": secret, "1": "/proc/kmsg", "2": "/proc/self/environ", "jobs/77.json": filepath.Join(elsewhere, "any.json")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	d, said := saying(dir)
	looked(t, "links", d, begun, map[string]uint64{"unreadable": 4}, "3=77")
	if job, _ := d.Job("77", ""); job != (Job{ID: "77"}) {
		t.Errorf("the job is %+v, of a file elsewhere", job)
	}
	if got := said(); strings.Contains(got, "root:") || strings.Contains(got, "SALT") || !strings.Contains(got, "/0: not a regular file") {
		t.Errorf("shown is %s", got)
	}

	linked := t.TempDir()
	put(t, linked, "0", "78\n", time.Hour)
	if err := os.Symlink(filepath.Join(elsewhere, "jobs"), filepath.Join(linked, "jobs")); err != nil {
		t.Fatal(err)
	}
	d, _ = saying(linked)
	looked(t, "jobs is a link", d, begun, map[string]uint64{"unreadable": 1}, "0=78")
	if job, _ := d.Job("78", ""); job != (Job{ID: "78"}) {
		t.Errorf("the job is %+v, of a directory elsewhere", job)
	}
}

// What is in a file is shown neither by the log nor by the state.
func TestDirectory_ShowsNothingOfFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "0", "7\nroot:$6$SALT$verysecrethash:19000:0:99999:7:::\n", time.Hour)
	for i, text := range []string{`{"user": secretword}`, `{"secretword`, `secretword`, `{"user": 53637265}`, `{"user": {"secretword": 1}}`, "{\"a\":\x01secretword}"} {
		id := strconv.Itoa(10 + i)
		put(t, dir, strconv.Itoa(1+i), id+"\n", time.Hour)
		put(t, dir, "jobs/"+id+".json", text, time.Hour)
	}
	d, said := saying(dir)
	d.look(begun)
	for _, word := range []string{"root:", "SALT", "secretword", "53637265"} {
		if strings.Contains(said(), word) {
			t.Errorf("%q of a file is shown:\n%s", word, said())
		}
	}
	if n := d.Counts()["malformed"]; n != 7 {
		t.Errorf("%d malformed, want 7:\n%s", n, said())
	}
}

// Names that no GPU has hide no job, however many there are.
func TestDirectory_JunkHidesNoJob(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "7", "30214\n", time.Hour)
	for i := range 6000 {
		put(t, dir, "junk"+strconv.Itoa(i), "", time.Hour)
	}
	d, _ := saying(dir)
	looked(t, "6,000 names that are no index", d, begun, nil, "7=30214")
	for i := range maxFiles {
		put(t, dir, strconv.Itoa(5000+i), "", time.Hour)
	}
	looked(t, "4,096 indexes that no GPU has", d, begun, map[string]uint64{"limit": 1}, "7=30214")
	for _, junk := range []string{"07", "7.01", "7.", ".7", "+7", "7.7.7", "70000"} {
		if n, ok := parseName(junk); ok {
			t.Errorf("%s is the name of a file: %+v", junk, n)
		}
	}
}

// Where others can write the directory, only files that they cannot have put there are read, and the state
// names what is wrong.
func TestDirectory_OthersMayWrite(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "0", "7\n", time.Hour)
	put(t, dir, "1", "8\n", time.Hour)
	put(t, dir, "2", "9\n", time.Hour)
	put(t, dir, "jobs/7.json", `{"user": "ada"}`, time.Hour)
	put(t, dir, "jobs/8.json", `{"user": "eve"}`, time.Hour)
	d, said := saying(dir)
	looked(t, "nobody else may", d, begun, nil, "0=7", "1=8", "2=9")
	if got := d.State().Shared; got != "" {
		t.Errorf("shared: %s", got)
	}
	for path, mode := range map[string]os.FileMode{"": 0o777, "1": 0o666, "jobs/8.json": 0o660} {
		if err := os.Chmod(filepath.Join(dir, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "2"), filepath.Join(t.TempDir(), "2")); err != nil {
		t.Fatal(err)
	}
	looked(t, "others may", d, begun, map[string]uint64{"unreadable": 2}, "0=7")
	if got := d.State().Shared; !strings.Contains(got, "mode 0777") || !strings.Contains(said(), "mode 0777") {
		t.Errorf("shared: %q; said %s", got, said())
	}
	if got, _ := d.Job("7", ""); got.User != "ada" {
		t.Errorf("job 7 is %+v", got)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "jobs"), 0o775); err != nil {
		t.Fatal(err)
	}
	looked(t, "only of the jobs", d, begun, map[string]uint64{"unreadable": 3}, "0=7", "1=8", "2=9")
	if got, _ := d.Job("8", ""); got.User == "eve" && !strings.Contains(said(), "jobs/8.json") {
		t.Errorf("job 8 is %+v:\n%s", got, said())
	}
	if os.Getuid() != 0 {
		return
	}
	if err := os.Chown(dir, 1002, -1); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(dir, "0"), 1002, -1); err != nil {
		t.Fatal(err)
	}
	d, _ = saying(dir)
	d.look(begun)
	if got := d.State(); got.Shared != "owned by UID 1002" || got.Jobs != 0 {
		t.Errorf("of another user: %+v", got)
	}
}

// Files that are large all together cost no more memory than what becomes labels.
func TestDirectory_ReadsAFewBytes(t *testing.T) {
	dir := t.TempDir()
	const gpus, each = 16, 250
	text := `{"user": "` + strings.Repeat("x", 35<<10) + `"}`
	for gpu := range gpus {
		var ids strings.Builder
		for i := range each {
			id := strconv.Itoa(1000*gpu + i + 1)
			ids.WriteString(id + "\n")
			put(t, dir, "jobs/"+id+".json", text, time.Hour)
		}
		put(t, dir, strconv.Itoa(gpu), ids.String(), time.Hour)
	}
	d := &Directory{Path: dir}
	before := heap()
	d.look(begun)
	if n := len(d.Entries()); n != gpus*each {
		t.Errorf("%d jobs, want %d", n, gpus*each)
	}
	if d.Counts()["limit"] == 0 {
		t.Error("no fault is counted")
	}
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	runtime.KeepAlive(d)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no heap is that large
}
