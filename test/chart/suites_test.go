package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The suites in charts/gpumeter/tests hold, each of them.
func TestSuites(t *testing.T) {
	suites, err := filepath.Glob(dir + "/tests/*_test.yaml")
	if err != nil || suites == nil {
		t.Fatalf("no suites: %v", err)
	}
	out, err := run(t, "GPUMETER_HELM_UNITTEST", "--strict", dir)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if got := strings.Count(out, "\n PASS "); got != len(suites) {
		t.Errorf("%d of %d suites passed\n%s", got, len(suites), out)
	}
}

// What is packed are all files but the suites.
func TestPackage(t *testing.T) {
	want := map[string]bool{}
	err := filepath.WalkDir(dir, func(file string, e os.DirEntry, err error) error {
		name, relative := filepath.Rel(dir, file)
		if err != nil || relative != nil || e.IsDir() || filepath.Dir(name) == "tests" {
			return err
		}
		want["gpumeter/"+filepath.ToSlash(name)] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, variable := range []string{"GPUMETER_HELM", "GPUMETER_HELM4"} {
		to := t.TempDir()
		if out, err := run(t, variable, "package", dir, "--destination", to); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if diff := cmp.Diff(want, packed(t, to)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", variable, diff)
		}
	}
}

// packed are the files in the one archive of a folder.
func packed(t *testing.T, folder string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	archives, err := filepath.Glob(folder + "/*.tgz")
	if err != nil || len(archives) != 1 {
		t.Fatalf("%q, %v", archives, err)
	}
	archive, err := os.ReadFile(archives[0])
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names[h.Name] = true
	}
}
