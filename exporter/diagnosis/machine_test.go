package diagnosis

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// write makes files below a new directory, by name; a name that ends in a slash is a directory.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestKernelVersion(t *testing.T) {
	for text, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n": "535.129.03",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build  (dvs-builder@U16)  Tue Mar  5 22:15:33 UTC 2024\n":            "550.54.15",
		"NVRM version: NVIDIA UNIX aarch64 Kernel Module  610.12  Mon Jun  1 00:00:00 UTC 2026\n":                                                         "610.12",
		"GCC version:  gcc version 112.2.0\n": "",
		"":                                    "",
		"NVRM version: 535.129.03-beta\n":     "",
	} {
		if got := kernelVersion(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestLibraryVersion(t *testing.T) {
	const line = "7f0000000000-7f0000001000 r-xp 00000000 08:01 42                 /usr/lib/x86_64-linux-gnu/"
	for text, want := range map[string]string{
		line + "libc.so.6\n" + line + "libnvidia-ml.so.550.54.15\n": "550.54.15",
		line + "libnvidia-ml.so.535.129.03 (deleted)\n":             "535.129.03", // upgraded under the process
		line + "libnvidia-ml.so.1\n":                                "",
		line + "libnvidia-ml.so.1.1\n":                              "",
		"":                                                          "",
	} {
		if got := libraryVersion(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

const loaded = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:15:33 UTC 2024\n"

// What each state of the files is, and which device nodes cannot be used.
func TestLooker_NVIDIA(t *testing.T) {
	gpu := func(minor, excluded string) string {
		return "Model: \t\t NVIDIA H100\nDevice Minor: \t " + minor + "\nGPU Excluded:\t " + excluded + "\n"
	}
	denied := func(path string) error {
		return &fs.PathError{Op: "access", Path: path, Err: syscall.EPERM}
	}
	for name, c := range map[string]struct {
		files  map[string]string
		access func(string) error
		want   NVIDIA
		nodes  string // NAME:missing or NAME:denied
	}{
		"nothing": {nil, nil, NVIDIA{}, ""},
		"all there": {
			map[string]string{"proc/driver/nvidia/version": loaded, "proc/driver/nvidia/gpus/0000:83:00.0/information": gpu("3", "No"), "dev/nvidiactl": "", "dev/nvidia3": ""}, nil,
			NVIDIA{Loaded: true, Kernel: "550.54.15", GPUs: []GPU{{"0000:83:00.0", 3, false}}}, "",
		},
		"no nodes": {
			map[string]string{"proc/driver/nvidia/version": loaded, "proc/driver/nvidia/gpus/0000:83:00.0/information": gpu("3", "No"), "dev/": ""}, nil,
			NVIDIA{Loaded: true, Kernel: "550.54.15", GPUs: []GPU{{"0000:83:00.0", 3, false}}}, "nvidiactl:missing nvidia3:missing",
		},
		"nodes that may not be opened": {
			map[string]string{"proc/driver/nvidia/version": loaded, "dev/": ""}, denied,
			NVIDIA{Loaded: true, Kernel: "550.54.15"}, "nvidiactl:denied",
		},
		"a GPU that is excluded, and one whose minor is unknown, need no node": {
			map[string]string{"proc/driver/nvidia/version": loaded, "proc/driver/nvidia/gpus/0000:83:00.0/information": gpu("0", "Yes"), "proc/driver/nvidia/gpus/0001:84:00.0/information": gpu("-1", "No"), "dev/nvidiactl": ""}, nil,
			NVIDIA{Loaded: true, Kernel: "550.54.15", GPUs: []GPU{{"0000:83:00.0", 0, true}, {"0001:84:00.0", -1, false}}}, "",
		},
		"a library of another version": {
			map[string]string{"proc/driver/nvidia/version": loaded, "dev/nvidiactl": "", "maps": "x /lib/libnvidia-ml.so.535.129.03\n"}, nil,
			NVIDIA{Loaded: true, Kernel: "550.54.15", Library: "535.129.03"}, "",
		},
	} {
		root := write(t, c.files)
		l := NewLooker(Config{Sys: root + "/sys", Proc: root + "/proc", Dev: root + "/dev", Maps: root + "/maps", access: c.access})
		got := l.Look(t.Context()).NVIDIA
		var nodes []string
		for _, n := range got.Nodes {
			state := ":denied"
			if n.Missing() {
				state = ":missing"
			}
			nodes = append(nodes, filepath.Base(n.Path)+state)
		}
		got.Nodes = nil
		if !reflect.DeepEqual(got, c.want) || strings.Join(nodes, " ") != c.nodes {
			t.Errorf("%s:\ngot  %+v, %q\nwant %+v, %q", name, got, nodes, c.want, c.nodes)
		}
	}
}

// The library that the user names is looked for, and only that.
func TestLooker_NoFile(t *testing.T) {
	root := write(t, map[string]string{"lib": ""})
	for path, want := range map[string]string{"": "", root + "/lib": "", root + "/none": root + "/none"} {
		if got := NewLooker(Config{Sys: root, Proc: root, Dev: root, Maps: root + "/maps", Library: path}).Look(t.Context()).NVIDIA.NoFile; got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

// A device whose configuration space is all ones has fallen off the bus; one that sleeps is not woken to see.
func TestLooker_Fallen(t *testing.T) {
	files := map[string]string{}
	for address, f := range map[string][2]string{
		"0000:83:00.0": {"\xde\x10\x30\x23\x07", "active\n"},
		"0000:84:00.0": {"\xff\xff\xff\xff\xff", "active\n"},
		"0000:85:00.0": {"\xff\xff\xff\xff\xff", "suspended\n"},
		"0000:86:00.0": {"\xff\xff", "active\n"},
	} {
		dir := "sys/bus/pci/devices/" + address + "/"
		files[dir+"class"], files[dir+"vendor"], files[dir+"device"] = "0x030200\n", "0x10de\n", "0x2330\n"
		files[dir+"config"], files[dir+"power/runtime_status"] = f[0], f[1]
	}
	root := write(t, files)
	m := NewLooker(Config{Sys: root + "/sys", Proc: root, Dev: root, Maps: root + "/maps"}).Look(t.Context())
	if want := []string{"0000:84:00.0"}; !reflect.DeepEqual(m.Fallen, want) || len(m.Bus) != 4 {
		t.Errorf("%q have fallen, want %q; %d on the bus", m.Fallen, want, len(m.Bus))
	}
}

// A driver whose files hang costs one goroutine and two seconds of each caller's time, and is told.
func TestLooker_Silent(t *testing.T) {
	root := write(t, map[string]string{"proc/driver/nvidia/version": loaded, "dev/": ""})
	synctest.Test(t, func(t *testing.T) {
		hang, calls := make(chan struct{}), new(atomic.Int64)
		l := NewLooker(Config{Sys: root, Proc: root + "/proc", Dev: root + "/dev", Maps: root + "/maps", access: func(string) error {
			calls.Add(1)
			<-hang
			return nil
		}})
		for range 3 {
			start := time.Now()
			if m := l.Look(context.Background()); !m.Silent || m.NVIDIA.Loaded || time.Since(start) != patience {
				t.Errorf("%+v after %v", m, time.Since(start))
			}
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%d goroutines hang", n)
		}
		close(hang)
		synctest.Wait()
		if m := l.Look(context.Background()); m.Silent || !m.NVIDIA.Loaded || calls.Load() != 2 {
			t.Errorf("afterwards: %+v, %d calls", m, calls.Load())
		}
	})
}

// Whatever the driver's files hold, a minor is one of a device node.
func FuzzInformation(f *testing.F) {
	f.Add("Device Minor: \t 0\nGPU Excluded:\t No\n")
	f.Add("Device Minor:99999999999\n\n:::")
	f.Fuzz(func(t *testing.T, text string) {
		if g := information(text); g.Minor < -1 || g.Minor > 1<<16 {
			t.Errorf("%q: minor %d", text, g.Minor)
		}
		if v := kernelVersion(text); strings.ContainsAny(v, " \n/") {
			t.Errorf("%q: version %q", text, v)
		}
		libraryVersion(text)
	})
}
