package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// memoryGroup is a cgroup whose processes get no more than a limit of memory.
type memoryGroup struct{ dir, used string }

// newMemoryGroup makes a cgroup with a limit in MiB, of version 1 or 2, or skips the test where it cannot.
func newMemoryGroup(t *testing.T, limit int) memoryGroup {
	t.Helper()
	var faults []error
	for _, v := range []struct{ root, limit, used, swap string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes", ""},
		{"/sys/fs/cgroup", "memory.max", "memory.peak", "memory.swap.max"},
	} {
		dir := filepath.Join(v.root, fmt.Sprintf("gpumeter-attack-%d-%d", os.Getpid(), time.Now().UnixNano()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			faults = append(faults, err)
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, v.limit), []byte(strconv.Itoa(limit<<20)), 0o644); err != nil {
			faults = append(faults, err, os.Remove(dir))
			continue
		}
		if v.swap != "" {
			os.WriteFile(filepath.Join(dir, v.swap), []byte("0"), 0o644) //nolint:errcheck // a machine without swap has no such file
		}
		t.Cleanup(func() {
			for range 100 { // its process has just ended
				if os.Remove(dir) == nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			t.Errorf("%s cannot be removed", dir)
		})
		return memoryGroup{dir, filepath.Join(dir, v.used)}
	}
	t.Skipf("needs root and a memory cgroup: %v", errors.Join(faults...))
	return memoryGroup{}
}

// command returns a command line that runs a program in the group.
func (g memoryGroup) command(program string, args ...string) []string {
	return append([]string{"sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, g.dir, program}, args...)
}

// peak returns the most memory the group has used, MiB; 0: the kernel does not say.
func (g memoryGroup) peak() int {
	raw, err := os.ReadFile(g.used)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(raw)))
	return n >> 20
}

// anonymous returns the memory of a process that is its own and not of a file, KiB.
func anonymous(t *testing.T, pid int) int {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "RssAnon:"); ok {
			n, err := strconv.Atoi(strings.Fields(text)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no RssAnon in /proc")
	return 0
}
