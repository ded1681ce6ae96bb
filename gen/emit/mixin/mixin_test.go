package mixin

import (
	"testing"

	"github.com/gpumeter/gpumeter/gen/gentest"
	"github.com/gpumeter/gpumeter/gen/resolve"
)

func TestGolden(t *testing.T) { gentest.Golden(t, Emitter, "testdata/sample.txtar") }

// A spec without rules has no mixin.
func TestNone(t *testing.T) {
	if files, err := run(new(resolve.Model)); err != nil || len(files) > 0 {
		t.Errorf("%v, %v, want nothing", files, err)
	}
}
