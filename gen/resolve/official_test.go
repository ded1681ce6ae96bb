package resolve

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpumeter/gpumeter/gen/schema"
)

// The tables say what test/semconv/official.txt does, which was made from the registry's data.
func TestOfficialTables(t *testing.T) {
	raw, err := os.ReadFile("../../test/semconv/official.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), "semantic conventions "+OfficialVersion+" ") {
		t.Errorf("official.txt is not of %s", OfficialVersion)
	}
	attributes, metrics := map[string][]string{}, map[string][]string{}
	for line := range strings.Lines(string(raw)) {
		switch words := strings.Fields(line); words[0] {
		case "attribute":
			attributes[words[1]] = words[2:]
		case "metric":
			metrics[words[1]] = []string{}
			for _, w := range words[4:] {
				if key, required := strings.CutSuffix(w, "!"); required {
					metrics[words[1]] = append(metrics[words[1]], key)
				}
			}
		}
	}
	for name, required := range officialMetrics {
		if diff := cmp.Diff(metrics[name], required); diff != "" {
			t.Errorf("%s (-official +ours):\n%s", name, diff)
		}
	}
	for _, key := range officialAttributes {
		if attributes[key] == nil {
			t.Errorf("%s is no official attribute", key)
		}
	}
	for ours, all := range counterparts {
		for _, c := range all {
			if attributes[c.Key] == nil {
				t.Errorf("%s: %s is no official attribute", ours, c.Key)
			}
		}
	}
	if !slices.IsSorted(officialAttributes) {
		t.Error("officialAttributes is not sorted")
	}
}

// Every counterpart is of an attribute and of members the spec has.
func TestCounterparts(t *testing.T) {
	spec, err := schema.Load(os.DirFS("../../spec"))
	if err != nil {
		t.Fatal(err)
	}
	have := map[string][]string{}
	for _, a := range spec.Attributes {
		have[a.Key] = []string{}
		for _, m := range a.Members {
			have[a.Key] = append(have[a.Key], m.ID)
		}
	}
	for _, ours := range slices.Sorted(maps.Keys(counterparts)) {
		if have[ours] == nil {
			t.Errorf("%s is not in spec/attributes.yaml", ours)
		}
		for _, c := range counterparts[ours] {
			for member := range c.Values {
				if !slices.Contains(have[ours], member) {
					t.Errorf("%s: %s has no member %s", c.Key, ours, member)
				}
			}
		}
	}
}
