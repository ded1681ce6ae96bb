package slurm

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// write makes a directory of mapping files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRead(t *testing.T) {
	ada := Job{ID: "30214", User: "ada", Account: "physics", Partition: "gpu-long", QOS: "normal", Name: "llama"}
	for name, c := range map[string]struct {
		files map[string]string
		want  []Entry
		err   string
	}{
		"nothing":              {nil, nil, ""},
		"one GPU":              {map[string]string{"0": "30214\n"}, []Entry{{"0", "", Job{ID: "30214"}}}, ""},
		"without a line's end": {map[string]string{"0": "30214"}, []Entry{{"0", "", Job{ID: "30214"}}}, ""},
		"a MIG instance":       {map[string]string{"2.7": "7\n"}, []Entry{{"2", "7", Job{ID: "7"}}}, ""},
		"shared":               {map[string]string{"1": "7\n8\n\n"}, []Entry{{"1", "", Job{ID: "7"}}, {"1", "", Job{ID: "8"}}}, ""},
		"the same twice":       {map[string]string{"1": "7\n7\n"}, []Entry{{"1", "", Job{ID: "7"}}}, ""},
		"an array's task":      {map[string]string{"1": "7_12\n"}, []Entry{{"1", "", Job{ID: "7_12"}}}, ""},
		"with what is known": {map[string]string{
			"0": "30214\n", "1": "30214\n",
			"jobs/30214.json": `{"user": "ada", "account": "physics", "partition": "gpu-long", "qos": "normal", "name": "llama", "more": 1}`,
		}, []Entry{{"0", "", ada}, {"1", "", ada}}, ""},
		"half written": {map[string]string{"0": "30214\n", "jobs/30214.json": `{"user": "a`}, []Entry{{"0", "", Job{ID: "30214"}}}, "jobs/30214.json"},
		"hostile":      {map[string]string{"0": "$(reboot)\n7\n", "1": "8\n"}, []Entry{{"0", "", Job{ID: "7"}}, {"1", "", Job{ID: "8"}}}, "/0:1: not a job ID"},
		"huge":         {map[string]string{"0": strings.Repeat("7\n", maxFile), "1": "8\n"}, []Entry{{"1", "", Job{ID: "8"}}}, "more than"},
		"not ours":     {map[string]string{".0.swp": "7\n", "0.new": "7\n", "README": "7\n", "-1": "7\n", "0.1.2": "7\n"}, nil, ""},
	} {
		got, err := readAll(write(t, c.files))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if (err != "") != (c.err != "") || !strings.Contains(err, c.err) {
			t.Errorf("%s: error %v, want %q", name, err, c.err)
		}
	}
}

// readAll reads a directory that nobody is writing into, and says what is wrong with it.
func readAll(dir string) ([]Entry, string) {
	c := read(dir, contents{}, time.Now().Add(time.Hour))
	return c.entries, c.String()
}

// The prolog and the epilog that are shipped write what is read here.
func TestScripts(t *testing.T) {
	for _, program := range []string{"sh", "flock"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s to run the scripts with", program)
		}
	}
	dir := filepath.Join(t.TempDir(), "jobs here")
	run := func(script string, env ...string) {
		t.Helper()
		c := exec.Command("sh", "../../../contrib/slurm/"+script)
		c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GPUMETER_SLURM_JOB_MAPPING_DIR=" + dir}, env...)
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, said)
		}
	}
	want := func(when string, entries ...Entry) {
		t.Helper()
		got, err := readAll(dir)
		if err != "" || !slices.Equal(got, entries) {
			t.Errorf("%s: %+v, %v; want %+v", when, got, err, entries)
		}
	}
	run("epilog.sh", "SLURM_JOB_ID=1")
	want("before any job")
	ada := Job{ID: "7", SLUID: "s5K1KKYAYG5D00", User: "ada", Account: "physics", Partition: "gpu long", QOS: "normal", Name: "a bc"}
	run("prolog.sh", "SLURM_JOB_ID=7", "SLURM_JOB_GPUS=0,1", "SLURM_JOB_USER=ada", "SLURM_JOB_ACCOUNT=physics",
		"SLURM_JOB_PARTITION=gpu long", "SLURM_JOB_QOS=normal", "SLURM_JOB_NAME=a \"b\\\nc", "SLURM_JOB_SLUID=s5K1KKYAYG5D00")
	run("prolog.sh", "SLURM_JOB_ID=8", "SLURM_JOB_GPUS=1")
	run("prolog.sh", "SLURM_JOB_ID=8", "SLURM_JOB_GPUS=1") // requeued
	run("prolog.sh", "SLURM_JOB_ID=9")                     // without a GPU
	want("two jobs, sharing one", Entry{"0", "", ada}, Entry{"1", "", ada}, Entry{"1", "", Job{ID: "8"}})
	run("epilog.sh", "SLURM_JOB_ID=7")
	want("one has ended", Entry{"1", "", Job{ID: "8"}})
	run("epilog.sh", "SLURM_JOB_ID=8")
	want("both have")
	// They end well wherever they can not write: Slurm drains the node of a prolog that fails.
	for _, script := range []string{"prolog.sh", "epilog.sh"} {
		run(script, "SLURM_JOB_ID=9", "SLURM_JOB_GPUS=0", "GPUMETER_SLURM_JOB_MAPPING_DIR=/dev/null/jobs")
		run(script, "SLURM_JOB_GPUS=0")
	}
	want("nothing could be written")
}

func FuzzJobs(f *testing.F) {
	f.Add("30214\n7_12 x\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "0")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		c := read(dir, contents{}, time.Now().Add(time.Hour))
		for _, id := range c.ids["0"] {
			if !jobID.MatchString(id) {
				t.Errorf("%q", id)
			}
		}
	})
}
