// Package budget holds the built binary to its limits of size and memory.
package budget

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binaryLimit is the largest size of the stripped binary, in bytes.
const binaryLimit = 27_000_000

// binary is the gpumeter that TestMain built.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "budget")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
		binary = filepath.Join(dir, "gpumeter")
		build := exec.Command("make", "--no-print-directory", "build", "BINARY="+binary)
		build.Dir = filepath.Join("..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %v\n%s", build.Args, err, out)
			return 1
		}
		return m.Run()
	}())
}

func TestBinarySize(t *testing.T) {
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the stripped binary has %d bytes, the limit is %d", info.Size(), binaryLimit)
	if info.Size() > binaryLimit {
		t.Errorf("the stripped binary has %d bytes, the limit is %d; CONTRIBUTING.md says what each dependency costs", info.Size(), binaryLimit)
	}
}
