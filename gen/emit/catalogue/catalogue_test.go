package catalogue

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/gen/gentest"
)

func TestGolden(t *testing.T) {
	table := string(gentest.Golden(t, Emitter, "testdata/sample.txtar")[0].Data)
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	if !strings.HasPrefix(lines[0], "# ") {
		t.Errorf("begins with %q, no comment", lines[0])
	}
	if !slices.IsSorted(lines[2:]) {
		t.Error("the lines are not sorted")
	}
	for _, line := range lines[1:] {
		cells := strings.Split(line, "\t")
		if len(cells) != len(columns) || slices.Contains(cells, "") {
			t.Errorf("%d cells, want %d, none empty: %q", len(cells), len(columns), line)
		}
	}
}

// Every exported metric has its line, in each scope of its group.
func TestComplete(t *testing.T) {
	m := gentest.Model(t)
	files, err := run(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range m.Metrics {
		if n := strings.Count(string(files[0].Data), "\n"+m.Prom+"\t"); n != 1 {
			t.Errorf("%s has %d lines", m.Prom, n)
		}
	}
}
