package semconv

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// facts are what official.txt says of the official registry.
type facts struct {
	version    string
	attributes map[string][]string // by key: the values of an enum
	metrics    map[string]officialMetric
	moved      map[string]bool
}

type officialMetric struct {
	instrument, unit string
	required, all    []string
}

var versionOf = regexp.MustCompile(`semantic conventions (\d+\.\d+\.\d+)`)

// official reads official.txt, which is sorted and says what it was read from.
func official(t *testing.T) facts {
	t.Helper()
	raw, err := os.ReadFile("official.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := facts{attributes: map[string][]string{}, metrics: map[string]officialMetric{}, moved: map[string]bool{}}
	var lines []string
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if m := versionOf.FindStringSubmatch(line); m != nil && strings.HasPrefix(line, "#") {
			out.version = m[1]
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		lines = append(lines, line)
		words := strings.Split(line, " ")
		switch {
		case words[0] == "attribute" && len(words) > 1:
			out.attributes[words[1]] = words[2:]
		case words[0] == "moved" && len(words) == 2:
			out.moved[words[1]] = true
		case words[0] == "metric" && len(words) > 3:
			m := officialMetric{instrument: words[2], unit: words[3]}
			for _, w := range words[4:] {
				key, required := strings.CutSuffix(w, "!")
				m.all = append(m.all, key)
				if required {
					m.required = append(m.required, key)
				}
			}
			out.metrics[words[1]] = m
		default:
			t.Errorf("official.txt: cannot read %q", line)
		}
	}
	if !slices.IsSorted(lines) || len(slices.Compact(slices.Clone(lines))) != len(lines) {
		t.Error("official.txt is not sorted, or says something twice")
	}
	if out.version == "" || len(out.attributes) < 100 || len(out.metrics) < 50 || len(out.moved) == 0 {
		t.Errorf("official.txt: version %q, %d attributes, %d metrics, %d moved", out.version, len(out.attributes), len(out.metrics), len(out.moved))
	}
	return out
}

// knows says whether the official attribute may have the value. Enums of the registry are open, but
// a word of our own there would be read as a mistake.
func (f facts) knows(key, value string) bool {
	values := f.attributes[key]
	return len(values) == 0 || slices.Contains(values, value)
}
