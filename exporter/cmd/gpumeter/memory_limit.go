package main

import (
	"errors"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// memoryShare is how much of the cgroup's limit the Go runtime may use. The rest is for what it does not
// count: the pages of the binary, the driver's library, and buffers in the kernel.
const memoryShare = 0.85

// noLimit is from where on a limit means none: cgroups of version 1 have a number near 2^63 then.
const noLimit = math.MaxInt64 / 2

// memoryLimit returns the lowest memory limit of this process' cgroups, bytes. files is the root of the file
// system.
func memoryLimit(files string) (limit int64, ok bool) {
	raw, err := os.ReadFile(filepath.Join(files, "proc/self/cgroup"))
	if err != nil {
		return 0, false // not Linux
	}
	limit = noLimit
	for line := range strings.Lines(string(raw)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case controllers == "":
			for _, root := range []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"} {
				limit = min(limit, lowest(filepath.Join(files, root), group, "memory.max"))
			}
		case strings.Contains(","+controllers+",", ",memory,"):
			limit = min(limit, lowest(filepath.Join(files, "sys/fs/cgroup/memory"), group, "memory.limit_in_bytes"))
		}
	}
	return limit, limit < noLimit
}

// lowest returns the lowest limit of a cgroup and those above it. A container may see its own cgroup as the
// root, and the path of another.
func lowest(root, group, file string) int64 {
	limit := int64(noLimit)
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		if n, err := readLimit(filepath.Join(root, filepath.FromSlash(group), file)); err == nil {
			limit = min(limit, n)
		}
		if group == "/" {
			return limit
		}
	}
}

var errNoLimit = errors.New("no limit")

// readLimit reads a file with a number of bytes, or the word max.
func readLimit(name string) (int64, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	if err == nil && n <= 0 {
		err = errNoLimit
	}
	return n, err
}
