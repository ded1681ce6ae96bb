package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The same files built in another folder are the same release to the byte.
func TestAgain(t *testing.T) {
	first, err := os.ReadFile(made(t, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "elsewhere")
	output(t, "sh", "-c", "mkdir "+copied+" && cd "+root+" && git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "+copied)
	git := strings.TrimSpace(output(t, "git", "-C", root, "rev-parse", "--absolute-git-dir"))
	c := exec.Command("make", "--no-print-directory", "packages")
	c.Dir = copied
	c.Env = append(os.Environ(), "GIT_DIR="+git, "GIT_WORK_TREE="+copied)
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", c.Args, err, said)
	}
	second, err := os.ReadFile(filepath.Join(copied, "dist/SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if string(first) != string(second) {
		t.Errorf("first\n%s\nthen\n%s", first, second)
	}
}
