// Package fakenvml builds a libnvidia-ml.so.1 of our own, which does what a file tells it
// (library/config.h says what can be told), so that tests go through the real loader.
package fakenvml

import (
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Library is the name of the file that Build makes.
const Library = "libnvidia-ml.so.1"

// OldDriver is the flag for a library that has only what the oldest driver served had.
const OldDriver = "-DOLD_DRIVER"

//go:embed library
var sources embed.FS

// Build compiles the library and returns the directory it is in. The test is skipped where there
// is no C compiler.
//
// A process that has called one build keeps it: the loader binds a call once, and another library
// opened later is never reached. So each build needs a process of its own.
func Build(t testing.TB, flags ...string) (dir string) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to build the fake NVML library with")
	}
	dir = t.TempDir()
	src := filepath.Join(dir, "source")
	if err := os.CopyFS(src, sources); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(src, "library", "*.c"))
	if err != nil || len(files) == 0 {
		t.Fatal("no sources of the fake NVML library: ", err)
	}
	args := []string{
		"-shared", "-fPIC", "-O1", "-std=gnu11", "-Wall", "-Werror", "-pthread", "-Wl,-soname," + Library,
		"-DNVML_NO_UNVERSIONED_FUNC_DEFS", "-I", headers(t), "-o", filepath.Join(dir, Library),
	}
	build := exec.Command(gcc, append(append(args, flags...), files...)...)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, said)
	}
	return dir
}

// headers is where go-nvml keeps NVIDIA's nvml.h.
func headers(t testing.TB) string {
	t.Helper()
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml")
	said, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", list.Args, err, said)
	}
	return filepath.Join(strings.TrimSpace(string(said)), "pkg", "nvml")
}

// Configure writes what the library is to do, at once, to a file for the environment variable
// FAKENVML_CONFIG. It may be called again while the library is open.
func Configure(t testing.TB, file string, lines ...string) {
	t.Helper()
	next := file + ".next"
	if err := os.WriteFile(next, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, file); err != nil { // so that it is never read half written
		t.Fatal(err)
	}
}
