//go:build cgo

package nvml_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/source/nvml"
	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// compile makes a shared library of C, linked to others.
func compile(t *testing.T, path, code string, others ...string) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to build a library with")
	}
	source := path + ".c"
	if err := os.WriteFile(source, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command(gcc, append([]string{"-shared", "-fPIC", "-Wl,--no-as-needed", "-o", path, source}, others...)...)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, said)
	}
}

// What is at the path must be the driver's library. Only where there is no such file may the driver
// still come; all else is a mistake that is told, and none of it may be called.
func TestFind(t *testing.T) {
	alone(t, "", func(d driver) {
		dir := d.TempDir()
		write := func(name, text string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
				d.Fatal(err)
			}
			return path
		}
		built := func(name, code string, others ...string) string {
			path := filepath.Join(dir, name)
			compile(d.T, path, code, others...)
			return path
		}
		gone := built("libgone.so", "int gone(void) { return 1; }")
		needs := built("needs.so", "int gone(void); int nvmlInit_v2(void) { return gone(); }", gone)
		if err := os.Remove(gone); err != nil {
			d.Fatal(err)
		}
		dangling := filepath.Join(dir, "dangling.so")
		if err := os.Symlink(filepath.Join(dir, "nowhere"), dangling); err != nil {
			d.Fatal(err)
		}
		for _, c := range []struct {
			name, path string
			absent     bool
			says       string
		}{
			{"no file", filepath.Join(dir, "libnvidia-ml.so.1"), true, "No such file"},
			{"no folder", filepath.Join(dir, "nowhere", "libnvidia-ml.so.1"), true, "No such file"},
			{"a link to nothing", dangling, true, "No such file"},
			{"a text", write("text.so", "not a library, but long enough to have the header of one, and then some more of it\n"), false, "invalid ELF header"},
			{"an empty file", write("empty.so", ""), false, "file too short"},
			{"a folder", dir, false, dir},
			{"another library", built("other.so", "int other(void) { return 1; }"), false, "is not NVIDIA's management library"},
			{"another library, with something like it", built("like.so", "int nvmlInit(void) { return 0; } int nvmlShutdown(void) { return 0; }"), false, "is not NVIDIA's management library"},
			{"a library that lacks one of its own", needs, false, "libgone.so"},
		} {
			_, err := nvml.New(nvml.Config{Library: c.path}).Open(d.Context())
			if err == nil || errors.Is(err, source.ErrAbsent) != c.absent || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), filepath.Base(c.path)) {
				d.Errorf("%s: %v\nwant one that names %s and says %q; absent: %v", c.name, err, c.path, c.says, c.absent)
			}
		}
		r := d.open() // after all that
		if n := len(d.list(r)); n != 2 {
			d.Errorf("%d devices", n)
		}
		d.close(r)
	})
}

// Without a path the loader finds it by its name.
func TestFindByName(t *testing.T) {
	alone(t, "", func(d driver) {
		r, err := nvml.New(nvml.Config{}).Open(d.Context())
		if err != nil {
			d.Fatal(err)
		}
		defer d.close(r)
		if model := d.list(r)[0].Identity().Model; model != "Fake H100" {
			d.Errorf("%s is found first", model)
		}
	})
}

// A driver that answers nothing but the first call is no reason to end the process.
func TestDriverMismatch(t *testing.T) {
	alone(t, "", func(d driver) {
		d.tell("mismatch")
		_, err := nvml.New(nvml.Config{Library: d.library}).Open(d.Context())
		if err == nil || errors.Is(err, source.ErrAbsent) || !errors.Is(err, source.ErrStale) {
			d.Errorf("of another driver than the library is: %v", err)
		}
		for _, code := range []string{"4", "17", "999"} {
			d.tell("fail nvmlInit_v2 " + code)
			if _, err := nvml.New(nvml.Config{Library: d.library}).Open(d.Context()); !errors.Is(err, source.ErrDenied) {
				d.Errorf("Init fails with %s: %v", code, err)
			}
		}
		d.tell("gpus 2")
		d.close(d.open())
		if users := fakenvml.Stats(d, os.Getenv("FAKENVML_STATS"))["users"]; users != 0 {
			d.Errorf("%d users are left", users)
		}
	})
}
