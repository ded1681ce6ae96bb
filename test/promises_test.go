package test

import (
	"errors"
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

const (
	catalogueFile = "spec/reference/catalogue.tsv"
	changelogFile = "CHANGELOG.md"
)

// Dashboards, alerts and bills of people we do not know are built on our names. What the newest
// release before this commit said of them holds until the changelog says otherwise. Before the
// first release it is what any commit said: there is no other day from which on a name counts.
// The working tree is compared, so that a broken promise is seen before it is committed.
func TestPromises(t *testing.T) {
	repo, err := openGit("..")
	if err != nil {
		t.Skipf("no git history to compare %s with: %v", catalogueFile, err)
	}
	now, err := readCatalogue(readFile(t, filepath.Join("..", catalogueFile)))
	if err != nil {
		t.Fatalf("%s: %v", catalogueFile, err)
	}
	tag, commits, err := repo.promisedIn()
	if err != nil {
		t.Fatal(err)
	}
	said := repo.at(tag, changelogFile)
	named := announced(readFile(t, filepath.Join("..", changelogFile)), said)
	seen := map[string]bool{}
	for _, c := range commits {
		then, err := readCatalogue(repo.at(c, catalogueFile))
		if err != nil { // nobody can mend it there
			t.Logf("%s at %s: %v", catalogueFile, c, err)
			continue
		}
		for _, b := range brokenPromises(then, now) {
			if !mentions(named, b.name) && !seen[b.String()] {
				seen[b.String()] = true
				t.Errorf("%s (as of %s); where that is meant, %s needs a new line - [CHANGE] that names %s", b, c, changelogFile, b.name)
			}
		}
	}
	if shallow, err := repo.run("rev-parse", "--is-shallow-repository"); err != nil {
		t.Error(err)
	} else if tag == "" && strings.TrimSpace(shallow) == "true" {
		t.Skipf("the clone is shallow and has no release: compared with %d catalogues, older ones are not here", len(commits))
	}
	if len(commits) == 0 {
		t.Skipf("%s was never committed: nothing is promised yet", catalogueFile)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// git is a repository's history.
type git struct{ root string }

// openGit wants root to be the top of a work tree: a copy of our files that lies within somebody
// else's repository has that one's history.
func openGit(root string) (git, error) {
	g := git{root}
	up, err := g.run("rev-parse", "--show-cdup")
	if err == nil && strings.TrimSpace(up) != "" {
		err = errors.New("the repository is another one's")
	}
	if err == nil {
		_, err = g.run("rev-parse", "--verify", "--quiet", "HEAD")
	}
	return g, err
}

func (g git) run(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", g.root}, args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), pointsElsewhere)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w %s", args[0], err, strings.TrimSpace(said.String()))
	}
	return string(out), nil
}

// pointsElsewhere says whether a variable, which a git hook may have set, would make git work on
// another repository than the one we are in.
func pointsElsewhere(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return slices.Contains([]string{"GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"}, name)
}

// at returns a file as of a commit, empty when there is none.
func (g git) at(commit, file string) string {
	if commit == "" {
		return ""
	}
	text, err := g.run("show", commit+":"+file)
	if err != nil {
		return ""
	}
	return text
}

// promisedIn returns the newest release this commit builds on, when it has a catalogue, and the
// commits whose catalogues are promises: that one, or all that touched it, the oldest first.
// A release that is not among the ancestors binds another branch.
func (g git) promisedIn() (tag string, commits []string, err error) {
	if out, err := g.run("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"); err == nil {
		if tag = strings.TrimSpace(out); g.at(tag, catalogueFile) != "" {
			return tag, []string{tag}, nil
		}
	}
	out, err := g.run("log", "--format=%h", "--reverse", "--", catalogueFile)
	removed := func(commit string) bool { return g.at(commit, catalogueFile) == "" }
	return "", slices.DeleteFunc(strings.Fields(out), removed), err
}

// catalogue holds the lines of a table by metric, each its cells by column.
type catalogue map[string]map[string]string

// readCatalogue finds cells by the words above them, so that tables of other days, which may have
// more columns or fewer, can be read.
func readCatalogue(text string) (catalogue, error) {
	var columns []string
	out := catalogue{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		if columns == nil {
			if columns = cells; !slices.Contains(columns, "name") {
				return nil, errors.New("no column is called name")
			}
			continue
		}
		row := map[string]string{}
		for i, c := range cells[:min(len(cells), len(columns))] {
			row[columns[i]] = c
		}
		out[row["name"]] = row
	}
	if len(out) == 0 {
		return nil, errors.New("it has no lines")
	}
	return out, nil
}

// broken is one promise that is not kept.
type broken struct{ name, what string }

func (b broken) String() string { return b.name + " " + b.what }

// brokenPromises says what of then does not hold now. A new metric, a new member of an enum and a
// new bucket break nothing; a new label does: it makes other series of those there were.
func brokenPromises(then, now catalogue) []broken {
	var out []broken
	for _, name := range slices.Sorted(maps.Keys(then)) {
		is, ok := now[name]
		if !ok {
			out = append(out, broken{name, "is gone"})
			continue
		}
		for _, what := range changes(then[name], is) {
			out = append(out, broken{name, what})
		}
	}
	return out
}

// changes compares two lines of one metric.
func changes(was, is map[string]string) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, c := range []struct{ column, word string }{{"type", "type"}, {"unit", "unit"}, {"otel", "OpenTelemetry name"}} {
		if before := was[c.column]; before != is[c.column] && before != "" {
			say("changed its %s from %s to %s", c.word, before, is[c.column])
		}
	}
	if was["enabled"] == "default" && is["enabled"] != "default" {
		say("is off by default")
	}
	if was["stability"] == "stable" && is["stability"] == "development" {
		say("is no longer stable")
	}
	labels := parts(is["labels"], ",")
	gone, added := compare(parts(was["labels"], ","), labels)
	for _, l := range gone {
		say("lost its label %s", l)
	}
	for _, l := range added {
		say("has a new label %s", l)
	}
	before, after := members(was["members"]), members(is["members"])
	for _, label := range slices.Sorted(maps.Keys(before)) {
		if slices.Contains(gone, label) {
			continue // said
		}
		lost, _ := compare(before[label], after[label])
		for _, m := range lost {
			say("lost %s=%q", label, m)
		}
	}
	for _, label := range slices.Sorted(maps.Keys(after)) {
		if before[label] == nil && slices.Contains(labels, label) && !slices.Contains(added, label) {
			say("has %s limited to the values the spec lists", label)
		}
	}
	return out
}

// members are the values of a line's closed labels.
func members(cell string) map[string][]string {
	out := map[string][]string{}
	for _, of := range parts(cell, ";") {
		label, values, _ := strings.Cut(of, "=")
		out[label] = parts(values, "|")
	}
	return out
}

func parts(cell, by string) []string {
	if cell == "" || cell == "-" {
		return nil
	}
	return strings.Split(cell, by)
}

// compare returns what only one of two lists has.
func compare(was, is []string) (gone, added []string) {
	not := func(list []string) func(string) bool {
		return func(s string) bool { return slices.Contains(list, s) }
	}
	return slices.DeleteFunc(slices.Clone(was), not(is)), slices.DeleteFunc(slices.Clone(is), not(was))
}

// announced are the [CHANGE] lines that a changelog has and that of the last release has not.
// They may stand under the heading of a release already: it is written before it is tagged.
func announced(now, released string) []string {
	old := strings.Split(released, "\n")
	var out []string
	for line := range strings.SplitSeq(now, "\n") {
		if strings.HasPrefix(line, "- [CHANGE] ") && !slices.Contains(old, line) {
			out = append(out, line)
		}
	}
	return out
}

// mentions says whether a line has the name as a whole word.
func mentions(lines []string, name string) bool {
	word := regexp.MustCompile(`(^|[^A-Za-z0-9_:])` + regexp.QuoteMeta(name) + `($|[^A-Za-z0-9_:])`)
	return slices.ContainsFunc(lines, word.MatchString)
}
