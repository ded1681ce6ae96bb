package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// root is the repository.
const root = "../.."

// architectures are those a release is for, as Debian and as RPM call them, and where goreleaser puts the binary.
var architectures = []struct{ deb, rpm, folder string }{
	{"amd64", "x86_64", "gpumeter_linux_amd64_v1"},
	{"arm64", "aarch64", "gpumeter_linux_arm64_v8.0"},
}

// made is the one file of make packages that a pattern finds.
func made(t *testing.T, pattern string) string {
	t.Helper()
	dist := os.Getenv("GPUMETER_PACKAGES")
	if dist == "" {
		t.Skip("GPUMETER_PACKAGES does not say where make packages put the packages; make e2e-packages does")
	}
	found, err := filepath.Glob(filepath.Join(dist, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s in %s: %q, %v; want one", pattern, dist, found, err)
	}
	return found[0]
}

// needs skips the test where a program is missing.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("no %s here", p)
		}
	}
}

// output is what a program says, which is to succeed.
func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	command := exec.Command(program, args...)
	var wrong strings.Builder
	command.Stderr = &wrong
	said, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", command.Args, err, said, wrong.String())
	}
	return string(said)
}
