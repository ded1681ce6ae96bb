package markdown

import (
	"regexp"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/gen/gentest"
)

func TestGolden(t *testing.T) {
	page := string(gentest.Golden(t, Emitter, "testdata/sample.txtar")[0].Data)
	links(t, page)
	tables(t, page)
}

var (
	link    = regexp.MustCompile(`\]\(#([^)]*)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// links fails on a link to a heading that is not there, or that is there twice, in which case a
// browser goes to the first.
func links(t *testing.T, page string) {
	t.Helper()
	anchors := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		anchors[strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")]++
	}
	for _, m := range link.FindAllStringSubmatch(page, -1) {
		if n := anchors[m[1]]; n != 1 {
			t.Errorf("link to #%s: %d headings", m[1], n)
		}
	}
}

// tables fails on a row with more or fewer cells than the head of its table.
func tables(t *testing.T, page string) {
	t.Helper()
	cells := 0
	for i, line := range strings.Split(page, "\n") {
		n := strings.Count(line, "|") - strings.Count(line, `\|`)
		switch {
		case !strings.HasPrefix(line, "|"):
			cells = 0
		case cells == 0:
			cells = n
		case n != cells:
			t.Errorf("line %d: %d bars, its table has %d: %s", i+1, n, cells, line)
		}
	}
}
