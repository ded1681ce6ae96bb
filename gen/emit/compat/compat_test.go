package compat

import (
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/gen/gentest"
)

func TestGolden(t *testing.T) {
	for _, f := range gentest.Golden(t, Emitter, "testdata/sample.txtar") {
		cells := 0
		for i, line := range strings.Split(string(f.Data), "\n") {
			n := strings.Count(line, "|") - strings.Count(line, `\|`)
			switch {
			case !strings.HasPrefix(line, "|"):
				cells = 0
			case cells == 0:
				cells = n
			case n != cells:
				t.Errorf("%s:%d: %d bars, its table has %d: %s", f.Path, i+1, n, cells, line)
			}
		}
	}
}
