package gpumeter

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"
)

// taken are the folders of the bundle.
var taken = []string{"rules", "dashboards", "mixin", "spec/semconv"}

// below reads all files of these folders; one that is not there has none.
func below(t *testing.T, root fs.FS, folders ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, folder := range folders {
		err := fs.WalkDir(root, folder, func(p string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := fs.ReadFile(root, p)
			files[p] = string(text)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return files
}

// The bundle is these folders of the repository, byte for byte, and nothing else.
func TestBundle(t *testing.T) {
	root, err := Bundle()
	if err != nil {
		t.Fatal(err)
	}
	got, want := below(t, root, "."), below(t, os.DirFS("."), taken...)
	var names []string
	for p, text := range want {
		names = append(names, p)
		if _, there := got[p]; !there {
			t.Errorf("%s is not in the bundle", p)
		} else if got[p] != text {
			t.Errorf("%s is not as in the repository", p)
		}
	}
	for p := range got {
		if _, there := want[p]; !there {
			t.Errorf("%s is in the bundle and not in the repository", p)
		}
	}
	for _, p := range []string{"rules/objects/gpumeter-fleet.yaml", "mixin/config.libsonnet", "mixin/generated/fleet.libsonnet", "spec/semconv/manifest.yaml"} {
		if got[p] == "" {
			t.Errorf("the bundle lacks %s", p)
		}
	}
	if err := fstest.TestFS(root, names...); err != nil {
		t.Error(err)
	}
}
