package chart

import (
	"testing"

	"github.com/gpumeter/gpumeter/gen/gentest"
	"github.com/gpumeter/gpumeter/gen/resolve"
)

func TestGolden(t *testing.T) { gentest.Golden(t, Emitter, "testdata/sample.txtar") }

// A spec without rules has nothing for the chart.
func TestNone(t *testing.T) {
	if files, err := run(new(resolve.Model)); err != nil || len(files) > 0 {
		t.Errorf("%v, %v, want nothing", files, err)
	}
}

func TestSchemaFaults(t *testing.T) {
	for values, want := range map[string]string{
		"a: null":           "a: line 1: no type for !!null",
		"a: {b: 1} # {c: [": "a: line 1: the comment # {c: [: yaml: line 1: did not find expected node content",
		"a: [":              "yaml: line 1: did not find expected node content",
	} {
		if _, err := schemaOf(values); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", values, err, want)
		}
	}
}
