package packaging

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// machine is a Debian that runs in namespaces of its own. It ends with the test.
type machine struct {
	root string // where its files are
	init string // its first process
}

// unpacked is a Debian that does not run, with a package in it.
func unpacked(t *testing.T, file string) (root string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can start a machine in namespaces of its own")
	}
	needs(t, "unshare", "nsenter", "pgrep", "dpkg-deb")
	tar := os.Getenv("GPUMETER_DEBIAN")
	if tar == "" {
		t.Skip("GPUMETER_DEBIAN does not say where a Debian is, as a tar file; make e2e-packages makes one")
	}
	root = t.TempDir()
	if err := os.Chmod(filepath.Dir(root), 0o755); err != nil {
		t.Fatal(err)
	}
	output(t, "tar", "-xpf", tar, "-C", root, "--numeric-owner")
	output(t, "cp", file, filepath.Join(root, "srv", filepath.Base(file)))
	return root
}

// boot starts it, and waits until all services of its own run.
func boot(t *testing.T, root string) *machine {
	t.Helper()
	// Nobody looks at its console.
	if err := os.Symlink("/dev/null", filepath.Join(root, "etc/systemd/system/console-getty.service")); err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("machine")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("unshare", "--mount", "--propagation=private", here, root)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("the machine did not end well: %v", err)
		}
	})
	init, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal("no first process: ", err)
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // until it ends
	m := &machine{root, strings.TrimSpace(init)}
	m.until(t, "running", "systemctl", "is-system-running")
	return m
}

// command is one to run on the machine.
func (m *machine) command(words ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"-t", m.init, "-m", "-p", "-n", "-u", "-i", "-C", "-r", "-w", "env", "-i",
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"}, words...)...)
}

// run runs one that is to succeed.
func (m *machine) run(t *testing.T, words ...string) string {
	t.Helper()
	said, err := m.command(words...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s\n%s", words, err, said, m.journal())
	}
	return strings.TrimSpace(string(said))
}

// says is what one says that may fail, as is-enabled does where it says no.
func (m *machine) says(words ...string) string {
	said, _ := m.command(words...).CombinedOutput()
	return strings.TrimSpace(string(said))
}

// until waits for an answer.
func (m *machine) until(t *testing.T, want string, words ...string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	got := m.says(words...)
	for ; got != want && time.Now().Before(deadline); got = m.says(words...) {
		time.Sleep(100 * time.Millisecond)
	}
	if got != want {
		t.Fatalf("%v: %q, want %q\n%s", words, got, want, m.journal())
	}
}

func (m *machine) journal() string { return m.says("journalctl", "--no-pager", "-n", "40") }

// page is what the exporter serves there.
func (m *machine) page(t *testing.T) string {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		said, err := exec.Command("nsenter", "-t", m.init, "-n", "curl", "-fsS", "http://127.0.0.1:9450/metrics").CombinedOutput()
		if err == nil {
			return string(said)
		}
		if time.Now().After(deadline) {
			t.Fatalf("no page: %v: %s\n%s", err, said, m.journal())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// shows waits until lines of the page begin so, by regular expressions.
func (m *machine) shows(t *testing.T, lines ...string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		page := m.page(t)
		missing := ""
		for _, line := range lines {
			if !regexp.MustCompile("(?m)^" + line).MatchString(page) {
				missing = line
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s in\n%.4000s\n%s", missing, page, m.journal())
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// restless are folders in which a machine writes though nothing is installed.
var restless = []string{"proc", "sys", "dev", "run", "tmp", "srv", "opt", "old", "mnt", "var/log", "var/lib/dpkg", "var/lib/systemd", "var/tmp", "var/cache/ldconfig", "var/cache/apt", "var/lib/apt"}

// left are all other files of a machine, whether it runs or not.
func left(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	args := []string{root, "-mindepth", "1"}
	for _, dir := range restless {
		args = append(args, "-path", filepath.Join(root, dir), "-prune", "-o")
	}
	for line := range strings.Lines(output(t, "find", append(args, "-printf", "%P %y %m\n")...)) {
		out = append(out, strings.TrimSpace(line))
	}
	return out
}
