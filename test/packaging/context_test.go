package packaging

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/patternmatcher"
)

// .dockerignore lets all through that the program is made of, and not the rest.
func TestDockerignore(t *testing.T) {
	f, err := os.Open(root + "/.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	var patterns []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line := lines.Text(); !strings.HasPrefix(line, "#") {
			patterns = append(patterns, line)
		}
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	const all = `{{if and .Module .Module.Main}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}
{{end}}{{range .CgoFiles}}{{$d}}/{{.}}
{{end}}{{range .CFiles}}{{$d}}/{{.}}
{{end}}{{range .HFiles}}{{$d}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}
{{end}}{{end}}`
	wanted := strings.Fields(output(t, "go", "list", "-C", here, "-deps", "-f", all, "./exporter/cmd/gpumeter"))
	wanted = append(wanted, here+"/go.mod", here+"/go.sum")
	if len(wanted) < 100 {
		t.Fatalf("the program is made of %d files", len(wanted))
	}
	for _, file := range wanted {
		name, err := filepath.Rel(here, file)
		if err != nil {
			t.Fatal(err)
		}
		if gone, err := ignored.MatchesOrParentMatches(name); err != nil || gone {
			t.Errorf("%s is ignored, %v", name, err)
		}
	}
	for _, name := range []string{".git/config", "README.md", "dist/gpumeter", "bin/gpumeter", "test/house_test.go", "exporter/config/config_test.go", "dashboards/gpumeter-gpu.json"} {
		if gone, err := ignored.MatchesOrParentMatches(name); err != nil || !gone {
			t.Errorf("%s is in the context, %v", name, err)
		}
	}
}
