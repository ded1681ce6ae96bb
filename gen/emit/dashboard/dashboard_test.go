package dashboard

import (
	"testing"

	"github.com/gpumeter/gpumeter/gen/gentest"
)

func TestGolden(t *testing.T) { gentest.Golden(t, Emitter, "testdata/sample.txtar") }
