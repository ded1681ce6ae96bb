package diagnosis

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The README lists each ID, and no other.
func TestReadme_ListsIDs(t *testing.T) {
	source, err := os.ReadFile("finding.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "| ID | severity | meaning |")
	section, _, _ = strings.Cut(section, "\n\n")
	listed := map[string]bool{}
	for row := range strings.Lines(section) {
		cells := strings.Split(row, "|")
		if len(cells) < 2 {
			continue
		}
		for _, id := range regexp.MustCompile("`([a-z…-]+)`").FindAllStringSubmatch(cells[1], -1) {
			listed[strings.TrimSuffix(id[1], "…")] = true
		}
	}
	ids := regexp.MustCompile(`ID = "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(ids) < 20 {
		t.Fatalf("%d IDs in finding.go", len(ids))
	}
	for _, id := range ids {
		if !listed[id[1]] {
			t.Errorf("the README does not list %s", id[1])
		}
		delete(listed, id[1])
	}
	for id := range listed {
		t.Errorf("the README lists %s, which there is not", id)
	}
}
