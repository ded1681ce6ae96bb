package e2e

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bundle runs gpumeter bundle.
func bundle(t *testing.T, args ...string) []byte {
	t.Helper()
	var said bytes.Buffer
	c := exec.CommandContext(t.Context(), binary, append([]string{"bundle"}, args...)...)
	c.Stderr = &said
	out, err := c.Output()
	if err != nil || said.Len() > 0 {
		t.Fatalf("gpumeter bundle %v: %v\n%s", args, err, said.String())
	}
	return out
}

// What is written is what the repository has, byte for byte.
func TestBundleIsTheRepositorys(t *testing.T) {
	dir := t.TempDir()
	bundle(t, "--output", dir)
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		rel, _ := strings.CutPrefix(file, dir+"/")
		got[rel] = string(text)
		return err
	})
	if err != nil || len(got) == 0 {
		t.Fatalf("%d files, %v", len(got), err)
	}
	for _, p := range slices.Sorted(maps.Keys(got)) {
		want, err := os.ReadFile(filepath.Join("../..", p))
		if err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(string(want), got[p]); diff != "" {
			t.Errorf("%s is not as in the repository (-want +got):\n%s", p, diff)
		}
	}
}

// promtool takes the one file that is printed for a Prometheus, and has nothing to say of it.
func TestBundlePromtool(t *testing.T) {
	promtool := os.Getenv("GPUMETER_PROMTOOL")
	if promtool == "" {
		t.Skip("GPUMETER_PROMTOOL does not name a promtool; `make test` sets it")
	}
	for _, args := range [][]string{{"rules", "--plain"}, {"rules", "--plain", "--extra"}, {"rules/plain/compat/gpumeter-compat-dcgm-4.8.yaml"}, {"rules/plain/gpumeter-fleet.yaml"}} {
		check := exec.CommandContext(t.Context(), promtool, "check", "rules", "--lint=all", "--lint-fatal")
		check.Stdin = bytes.NewReader(bundle(t, args...))
		if out, err := check.CombinedOutput(); err != nil || !strings.Contains(string(out), "SUCCESS") {
			t.Errorf("promtool check rules, of gpumeter bundle %v: %v\n%s", args, err, out)
		}
	}
}
