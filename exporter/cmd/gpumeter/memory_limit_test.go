package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The lowest limit of the process' cgroups counts, of both versions, in a container or not.
func TestMemoryLimit(t *testing.T) {
	const none = "9223372036854771712"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64 // 0: no limit
	}{
		"version 2, systemd unit":       {map[string]string{"proc/self/cgroup": "0::/system.slice/gpumeter.service\n", "sys/fs/cgroup/system.slice/gpumeter.service/memory.max": "67108864\n", "sys/fs/cgroup/system.slice/memory.max": "max\n"}, 64 << 20},
		"version 2, container":          {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "67108864\n"}, 64 << 20},
		"version 2, limit above":        {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "33554432\n"}, 32 << 20},
		"version 2, none":               {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		"version 1":                     {map[string]string{"proc/self/cgroup": "4:cpu:/x\n3:memory:/a/b\n0::/\n", "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "67108864\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": none}, 64 << 20},
		"version 1, container":          {map[string]string{"proc/self/cgroup": "3:hugetlb,memory:/kubepods/pod1/abc\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "67108864\n"}, 64 << 20},
		"version 1, none":               {map[string]string{"proc/self/cgroup": "3:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": none}, 0},
		"both, version 2 has the limit": {map[string]string{"proc/self/cgroup": "3:cpu:/\n0::/a\n", "sys/fs/cgroup/unified/a/memory.max": "1048576"}, 1 << 20},
		"garbage":                       {map[string]string{"proc/self/cgroup": "\n::\nx\n3:memory\n0::/../../a\n", "sys/fs/cgroup/a/memory.max": "-5"}, 0},
		"zero":                          {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "0"}, 0},
		"no cgroups":                    {nil, 0},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			p := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, ok := memoryLimit(root); ok != (c.want > 0) || ok && got != c.want {
			t.Errorf("%s: %d, %v; want %d", name, got, ok, c.want)
		}
	}
}
