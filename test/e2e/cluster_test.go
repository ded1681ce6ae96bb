package e2e

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// slurmNode is a Slurm of one node with four GPUs, as Debian packages it, with the prolog and the
// epilog that are shipped. Its GPUs are nodes in a /dev of its own.
type slurmNode struct {
	testing.TB
	name string
	dir  string
	jobs string // where the prolog writes
	init *exec.Cmd
}

// startSlurm begins one, and ends it with the test. The test is skipped where there is no Slurm, or
// where it can not run.
func startSlurm(t testing.TB) *slurmNode {
	t.Helper()
	for _, program := range []string{"munged", "slurmctld", "slurmd", "sbatch", "nsenter", "setpriv"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no Slurm here: %v (Debian: slurm-wlm slurm-client munge)", err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("Slurm's daemons, their control groups and a /dev of their own need root")
	}
	dir, err := os.MkdirTemp("/var/tmp", "gpumeter") // which the users of jobs may enter, wherever TMPDIR is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	n := &slurmNode{TB: t, name: fmt.Sprintf("gpumeter%d", os.Getpid()), dir: dir}
	n.jobs = filepath.Join(n.dir, "jobs")
	probe := filepath.Join(cgroups, "devices", n.name)
	if err := os.Mkdir(probe, 0o755); err != nil {
		t.Skipf("Slurm 22.05 needs control groups of version 1 that it may change: %v", err)
	}
	if err := os.Remove(probe); err != nil {
		t.Fatal(err)
	}
	n.configure()
	n.init = exec.Command("sh", filepath.Join(n.dir, "node.sh"), n.dir, n.name)
	n.init.Env = n.env()
	n.init.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL, // however this process ends
	}
	var said bytes.Buffer
	n.init.Stdout, n.init.Stderr = &said, &said
	if err := n.init.Start(); errors.Is(err, fs.ErrPermission) {
		t.Skipf("no namespaces here: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.stop()
		if t.Failed() {
			t.Logf("node.sh:\n%s", said.String())
			n.logs()
		}
	})
	n.wait("the node is idle", func() bool {
		state, err := n.command("", "sinfo", "-h", "-o", "%T").CombinedOutput()
		return err == nil && strings.TrimSpace(string(state)) == "idle"
	})
	return n
}

// configure writes the files of slurm/ with what is this node's put in.
func (n *slurmNode) configure() {
	n.Helper()
	if err := os.Chmod(n.dir, 0o755); err != nil { // users read slurm.conf
		n.Fatal(err)
	}
	scripts, err := filepath.Abs("../../contrib/slurm")
	if err != nil {
		n.Fatal(err)
	}
	port := func() string { return strings.TrimPrefix(freeAddress(n), "127.0.0.1:") }
	put := strings.NewReplacer("{node}", n.name, "{dir}", n.dir, "{scripts}", scripts, "{controller}", port(), "{daemon}", port())
	files, err := os.ReadDir("slurm")
	if err != nil {
		n.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join("slurm", f.Name()))
		if err != nil {
			n.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(n.dir, f.Name()), []byte(put.Replace(string(text))), 0o644); err != nil {
			n.Fatal(err)
		}
	}
	for _, sub := range []string{"state", "spool", "jobs"} {
		if err := os.Mkdir(filepath.Join(n.dir, sub), 0o755); err != nil {
			n.Fatal(err)
		}
	}
	key := make([]byte, 128)
	rand.Read(key)
	if err := os.WriteFile(filepath.Join(n.dir, "munge.key"), key, 0o400); err != nil {
		n.Fatal(err)
	}
}

func (n *slurmNode) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "SLURM_CONF=" + filepath.Join(n.dir, "slurm.conf")}
}

// command is a program on the node; user is root where it is empty.
func (n *slurmNode) command(user string, program ...string) *exec.Cmd {
	args := []string{"--target", strconv.Itoa(n.init.Process.Pid), "--mount", "--pid", "--uts", "--wd=/"}
	if user != "" {
		args = append(args, "setpriv", "--reuid="+user, "--clear-groups")
	}
	c := exec.Command("nsenter", append(args, program...)...)
	c.Env = n.env()
	return c
}

// run runs a program as root and returns what it says.
func (n *slurmNode) run(program ...string) string {
	n.Helper()
	return n.output(n.command("", program...))
}

func (n *slurmNode) output(c *exec.Cmd) string {
	n.Helper()
	said, err := c.CombinedOutput()
	if err != nil {
		n.Fatalf("%v: %v\n%s", c.Args, err, said)
	}
	return strings.TrimSpace(string(said))
}

// submit begins a job of a user that sleeps until it is cancelled, in its batch step and in one of srun's.
func (n *slurmNode) submit(user string, flags ...string) (job string) {
	n.Helper()
	c := n.command(user, append([]string{"sbatch", "--parsable", "--output=/dev/null", "--chdir=/", "--ntasks=1"}, flags...)...)
	c.Stdin = strings.NewReader("#!/bin/sh\nsrun --overlap sleep infinity &\nsleep infinity\n")
	return n.output(c)
}

var (
	elementForm = regexp.MustCompile(`(?m)^JobId=(\d+) ArrayJobId=\d+ ArrayTaskId=(\d+) `)
	indexForm   = regexp.MustCompile(` GRES=\S*\(IDX:(\d+)(?:-(\d+))?\)`)
)

// elements are the jobs of an array, by the number of their task.
func (n *slurmNode) elements(array string) map[string]string {
	n.Helper()
	out := map[string]string{}
	n.wait("the elements of job "+array+" run", func() bool {
		for _, m := range elementForm.FindAllStringSubmatch(n.run("scontrol", "-o", "show", "job", array), -1) {
			out[m[2]] = m[1]
		}
		return len(out) > 1
	})
	return out
}

// gpus are the GPUs that Slurm says a job was given, once it was.
func (n *slurmNode) gpus(job string) (out []string) {
	n.Helper()
	n.wait("job "+job+" has its GPUs", func() bool {
		m := indexForm.FindStringSubmatch(n.run("scontrol", "-o", "show", "job", "-d", job))
		if m == nil {
			return false
		}
		first, _ := strconv.Atoi(m[1])
		last := first
		if m[2] != "" {
			last, _ = strconv.Atoi(m[2])
		}
		for i := first; i <= last; i++ {
			out = append(out, strconv.Itoa(i))
		}
		return true
	})
	return out
}

// pid is the process of a step that sleeps, as the host numbers it.
func (n *slurmNode) pid(job, step string) (pid string) {
	n.Helper()
	n.wait("step "+step+" of job "+job+" runs", func() bool {
		// extern's process is in no task, and is Slurm's own.
		files, err := filepath.Glob(filepath.Join(cgroups, "devices", "slurm_"+n.name, "uid_*", "job_"+job, "step_"+step, "task_*", "cgroup.procs"))
		if err != nil {
			n.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil { // it has ended
				continue
			}
			for p := range strings.FieldsSeq(string(text)) {
				if name, err := os.ReadFile(filepath.Join("/proc", p, "comm")); err == nil && string(name) == "sleep\n" {
					pid = p
				}
			}
		}
		return pid != ""
	})
	return pid
}

// mapped are the jobs of each GPU as the prolog wrote them, and the files it has of jobs.
func (n *slurmNode) mapped() string {
	n.Helper()
	var out []string
	err := filepath.WalkDir(n.jobs, func(path string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, n.jobs+"/")
		if err != nil || e.IsDir() || strings.HasPrefix(name, ".") {
			return err
		}
		text, err := os.ReadFile(path)
		out = append(out, name+": "+strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ","))
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // an epilog was at work
		n.Fatal(err)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func (n *slurmNode) wait(what string, holds func() bool) {
	n.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			n.Fatalf("never: %s\n%s", what, n.mapped())
		}
	}
}

const cgroups = "/sys/fs/cgroup"

// stop ends all that was begun, and removes the control groups that are left.
func (n *slurmNode) stop() {
	n.Helper()
	n.init.Process.Kill() //nolint:errcheck // Wait tells
	n.init.Wait()         //nolint:errcheck // it was killed
	var left []string
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if left = n.sweep(); len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	if len(left) > 0 {
		n.Errorf("control groups are left: %v", left)
	}
}

// sweep removes the node's control groups, the deepest first, and returns those that are still in use.
func (n *slurmNode) sweep() (left []string) {
	tops, err := filepath.Glob(filepath.Join(cgroups, "*", "slurm_"+n.name))
	if err != nil {
		n.Fatal(err)
	}
	for _, top := range tops {
		var all []string
		walk := func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				all = append(all, path)
			}
			return nil // what is gone is not left
		}
		if err := filepath.WalkDir(top, walk); err != nil {
			n.Fatal(err)
		}
		slices.Reverse(all)
		for _, dir := range all {
			if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				left = append(left, dir)
			}
		}
	}
	return left
}

// logs shows the end of what the daemons said.
func (n *slurmNode) logs() {
	files, err := filepath.Glob(filepath.Join(n.dir, "*.out"))
	if err != nil {
		n.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			n.Error(err)
		}
		n.Logf("%s:\n%s", filepath.Base(f), text[max(0, len(text)-4000):])
	}
}
