// Package fakenvml builds a libnvidia-ml.so.1 of our own, which does what a file tells it
// (library/config.h says what can be told), so that tests go through the real loader.
package fakenvml

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Library is the name of the file that Build makes.
const Library = "libnvidia-ml.so.1"

// OldDriver is the flag for a library that has only what the oldest driver served had.
const OldDriver = "-DDRIVER=450"

// Drivers are the generations of drivers a library can be built as. A symbol that came later is
// missing from it, and the version it tells is one of that generation. Without a flag it is 580.
var Drivers = []string{"450", "535", "550", "570", "580", "590", "595", "610"}

// Driver is the flag for a generation of Drivers.
func Driver(generation string) string {
	if !slices.Contains(Drivers, generation) {
		panic("fakenvml: no driver " + generation)
	}
	return "-DDRIVER=" + generation
}

//go:embed library
var sources embed.FS

// Build compiles the library and returns the directory it is in. The test is skipped where there
// is no C compiler. What has been compiled before is kept in the user's cache.
//
// A process that has called one build keeps it: the loader binds a call once, and another library
// opened later is never reached. So each build needs a process of its own.
func Build(t testing.TB, flags ...string) (dir string) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to build the fake NVML library with")
	}
	if !slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "-DDRIVER=") }) {
		flags = append([]string{Driver("580")}, flags...)
	}
	args := append([]string{
		"-shared", "-fPIC", "-O2", "-std=gnu11", "-Wall", "-Werror", "-pthread", "-Wl,-soname," + Library,
		"-DNVML_NO_UNVERSIONED_FUNC_DEFS", "-I", Headers(t),
	}, flags...)
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, Library), compiled(t, gcc, args), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// compiled is the library as the compiler makes it of our sources.
func compiled(t testing.TB, gcc string, args []string) []byte {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	cache = filepath.Join(cache, "gpumeter", "fakenvml")
	kept := filepath.Join(cache, fmt.Sprintf("%x.so", fingerprint(t, append([]string{gcc}, args...))))
	if library, err := os.ReadFile(kept); err == nil {
		return library
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	src, err := os.MkdirTemp(cache, "build") // on the same file system, for the rename
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.RemoveAll(src); err != nil {
			t.Error(err)
		}
	}()
	if err := os.CopyFS(src, sources); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(src, "library", "*.c"))
	if err != nil || len(files) == 0 {
		t.Fatal("no sources of the fake NVML library: ", err)
	}
	made := filepath.Join(src, Library)
	build := exec.Command(gcc, append(append(args, "-o", made), files...)...)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, said)
	}
	library, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(made, kept); err != nil {
		t.Fatal(err)
	}
	return library
}

// fingerprint is of all that decides what the compiler makes.
func fingerprint(t testing.TB, command []string) []byte {
	t.Helper()
	sum := sha256.New()
	fmt.Fprintln(sum, command)
	err := fs.WalkDir(sources, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(sources, path)
		fmt.Fprintln(sum, path, len(text))
		sum.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum.Sum(nil)
}

// Headers is where go-nvml keeps NVIDIA's nvml.h.
func Headers(t testing.TB) string {
	t.Helper()
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml")
	said, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", list.Args, err, said)
	}
	return filepath.Join(strings.TrimSpace(string(said)), "pkg", "nvml")
}

// The library looks at its file when the kernel's coarse clock has gone on by 2 ms; a tick of that
// clock is 10 ms at most.
const noticed = 15 * time.Millisecond

// Configure writes what the library is to do, at once, to a file for the environment variable
// FAKENVML_CONFIG. It may be called again while the library is open, and returns when no call that
// begins later can still do what the file said before.
func Configure(t testing.TB, file string, lines ...string) {
	t.Helper()
	next := file + ".next"
	if err := os.WriteFile(next, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, file); err != nil { // so that it is never read half written
		t.Fatal(err)
	}
	time.Sleep(noticed)
}
