// Package compat holds the pages on other exporters against lists of those exporters' names.
package compat

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// field is a name there: the section it stands in, what its source calls it, and the names it
// exposes, of which there may be none.
type field struct {
	section, name string
	exposed       []string
}

func read(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func page(t *testing.T, name string) string {
	t.Helper()
	return read(t, filepath.Join("..", "..", "spec", "reference", name))
}

// cells splits the lines of a list at tabs; a name of - is none.
func cells(t *testing.T, file string) [][]string {
	t.Helper()
	var out [][]string
	for line := range strings.Lines(read(t, file)) {
		if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, "#") || strings.HasPrefix(line, "schema\t") {
			continue
		}
		row := strings.Split(line, "\t")
		if len(row) != 3 || slices.Contains(row, "") {
			t.Fatalf("%s: want three cells: %q", file, line)
		}
		out = append(out, row)
	}
	return out
}

func names(words ...string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return w == "-" })
}

// l9gpu is every field of its classes, and every name it adds for generative AI.
func l9gpu(t *testing.T) []field {
	t.Helper()
	var out []field
	for _, c := range cells(t, "l9gpu-fields.tsv") {
		out = append(out, field{c[0], c[1], names(c[2])})
	}
	for _, c := range cells(t, "l9gpu-genai-fields.tsv") {
		out = append(out, field{c[0] + " gen_ai", c[1], names(c[2])})
	}
	if len(out) != 854+40 {
		t.Errorf("%d fields; the lists are not whole", len(out))
	}
	return out
}

// dcgm is every default field in its old and its new name, and every label.
func dcgm(t *testing.T) []field {
	t.Helper()
	var out []field
	fields := 0
	for _, c := range cells(t, "dcgm-default-fields.txt") {
		section := "Labels"
		if c[0] == "field" {
			section = "Default fields"
			fields++
		}
		exposed := names(c[1], c[2])
		out = append(out, field{section, exposed[0], exposed})
	}
	if fields != 27 {
		t.Errorf("%d default fields; 26 were there up to 4.8, and one was added", fields)
	}
	return out
}

func TestL9gpu(t *testing.T) {
	for _, fault := range unanswered(l9gpu(t), page(t, "from-l9gpu.md"), "Labels") {
		t.Error(fault)
	}
}

func TestDcgm(t *testing.T) {
	for _, fault := range unanswered(dcgm(t), page(t, "from-dcgm.md"), "Other fields") {
		t.Error(fault)
	}
}

var coded = regexp.MustCompile("`([^`]*)`")

// row is one answer: the fields it is to, and all names that stand before it.
type row struct{ fields, names []string }

// section is what a page says under one heading.
type section struct {
	rows []row
	rest bool // one answer to all the others
}

// sections reads a page.
func sections(text string) map[string]*section {
	out := map[string]*section{}
	now := new(section)
	answer, named := 0, false // the column of the answer, and whether fields have one of their own
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "## "); ok {
			now = new(section)
			out[name] = now
		}
		now.rest = now.rest || strings.HasPrefix(line, "**Every")
		cells, ok := strings.CutPrefix(line, "| ")
		if !ok {
			continue
		}
		parts := strings.Split(cells, " | ")
		if i := slices.Index(parts, "Here"); i >= 0 {
			answer, named = i, parts[0] == "Field there"
			continue
		}
		r := row{names: words(strings.Join(parts[:answer], " "))}
		r.fields = r.names
		if named {
			r.fields = words(parts[0])
		}
		now.rows = append(now.rows, r)
	}
	return out
}

func words(text string) []string {
	var out []string
	for _, m := range coded.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// unanswered says which fields have no answer on the page or more than one, and which of the
// page's are no fields; the section beyond is more than was asked for.
func unanswered(fields []field, text, beyond string) []string {
	var out []string
	have := sections(text)
	wanted := map[*section][]string{}
	byRest := map[*section]bool{}
	for _, f := range fields {
		s := have[f.section]
		if s == nil {
			out = append(out, fmt.Sprintf("%s %s: no such section", f.section, f.name))
			continue
		}
		wanted[s] = append(append(wanted[s], f.name), f.exposed...)
		found := 0
		for _, r := range s.rows {
			if !slices.Contains(r.fields, f.name) {
				continue
			}
			found++
			for _, name := range f.exposed {
				if !slices.Contains(r.names, name) {
					out = append(out, fmt.Sprintf("%s %s: its row does not say %s", f.section, f.name, name))
				}
			}
		}
		if found == 0 && s.rest {
			byRest[s] = true
		} else if found != 1 {
			out = append(out, fmt.Sprintf("%s %s: %d answers", f.section, f.name, found))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		s := have[name]
		if name == beyond {
			continue
		}
		for _, r := range s.rows {
			for _, f := range r.fields {
				if !slices.Contains(wanted[s], f) {
					out = append(out, fmt.Sprintf("%s %s: an answer to no field", name, f))
				}
			}
		}
		if s.rest && !byRest[s] {
			out = append(out, name+": an answer to every other field, and there is none")
		}
	}
	return out
}

// Each way in which a page can be incomplete is reported.
func TestUnanswered(t *testing.T) {
	const text = `# From there

## Device

| Field there | Name there | Here | Note |
|---|---|---|---|
| ` + "`a` `b` | `there.a`<br>`there_a` | [`x`](#x) |  |\n| `c` |  | none | Never. |" + `

**Every other field**: none. It is none.

## More

| Name old | Name new | Here | Note |
|---|---|---|---|
|  | ` + "`N`" + ` | none |  |
`
	whole := []field{
		{"Device", "a", []string{"there.a"}}, {"Device", "b", nil}, {"Device", "c", nil}, {"Device", "d", nil}, {"More", "N", []string{"N"}},
	}
	for _, x := range []struct{ what, old, new, want string }{
		{"as it is", "", "", ""},
		{"left out", "| `c` |  | none | Never. |\n\n**Every other field**: none. It is none.\n", "", "Device c: 0 answers\nDevice d: 0 answers"},
		{"no rest", "**Every other field**: none. It is none.\n", "", "Device d: 0 answers"},
		{"twice", "| `c` |", "| `c` `a` |", "Device a: 2 answers\nDevice a: its row does not say there.a"},
		{"another name", "there.a", "there.b", "Device a: its row does not say there.a"},
		{"unknown", "| `c` |", "| `c` `e` |", "Device e: an answer to no field"},
		{"unknown, by name", "`N`", "`N`<br>`M`", "More M: an answer to no field"},
		{"nothing left", "`c`", "`c` `d`", "Device: an answer to every other field, and there is none"},
		{"no section", "## More", "## Less", "Less N: an answer to no field\nMore N: no such section"},
	} {
		got := unanswered(whole, strings.Replace(text, x.old, x.new, 1), "")
		slices.Sort(got)
		if strings.Join(got, "\n") != x.want {
			t.Errorf("%s: got %q, want %q", x.what, got, x.want)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\((metrics\.md)?#([^)]*)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// Every link leads to one heading.
func TestLinks(t *testing.T) {
	anchors := func(text string) map[string]int {
		out := map[string]int{}
		for _, m := range heading.FindAllStringSubmatch(text, -1) {
			out[strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")]++
		}
		return out
	}
	metrics := anchors(page(t, "metrics.md"))
	for _, name := range []string{"from-l9gpu.md", "from-dcgm.md"} {
		text := page(t, name)
		own := anchors(text)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			there := own
			if m[1] != "" {
				there = metrics
			}
			if n := there[m[2]]; n != 1 {
				t.Errorf("%s: link to %s#%s: %d headings", name, m[1], m[2], n)
			}
		}
	}
}

// promtool reads every query of the pages.
func TestQueries(t *testing.T) {
	promtool := os.Getenv("GPUMETER_PROMTOOL")
	if promtool == "" {
		t.Skip("GPUMETER_PROMTOOL does not name a promtool; `make test` sets it")
	}
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: queries\n    rules:\n")
	seen := map[string]bool{}
	for _, name := range []string{"from-l9gpu.md", "from-dcgm.md"} {
		column := -1
		for line := range strings.Lines(page(t, name)) {
			parts := strings.Split(line, " | ")
			if i := slices.Index(parts, "The same number"); i >= 0 || !strings.HasPrefix(line, "|") {
				column = i
				continue
			}
			if column < 0 || len(parts) <= column {
				continue
			}
			for _, query := range words(parts[column]) {
				if !seen[query] {
					seen[query] = true
					fmt.Fprintf(&rules, "      - {record: 'a:b:c%d', expr: '%s'}\n", len(seen), query)
				}
			}
		}
	}
	if len(seen) < 50 {
		t.Errorf("only %d queries", len(seen))
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
