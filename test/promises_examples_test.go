package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const head = "# " + said + "\nname\ttype\tunit\totel\tstability\tenabled\tlabels\tmembers\n"

// line is a catalogue's line, with some cells other than usual.
func line(cells map[string]string) string {
	out := []string{"gpu_power_watts", "gauge", "W", "gpu.power", "stable", "default", "gpu_uuid,sort,code", "sort=max|min"}
	for i, column := range []string{"name", "type", "unit", "otel", "stability", "enabled", "labels", "members"} {
		if c, ok := cells[column]; ok {
			out[i] = c
		}
	}
	return strings.Join(out, "\t") + "\n"
}

// What breaks a promise, and what comes close and does not.
func TestBrokenPromises(t *testing.T) {
	type cells = map[string]string
	other := line(cells{"name": "gpu_other_watts", "labels": "-", "members": "-"})
	for _, c := range []struct {
		what, then, now string
		want            string
	}{
		{"the same", line(nil), line(nil), ""},
		{"a metric added", other, other + line(nil), ""},
		{"a metric removed", other + line(nil), other, "gpu_power_watts is gone"},
		{"a metric renamed", line(nil), line(cells{"name": "gpu_force_watts"}), "gpu_power_watts is gone"},
		{"another type", line(nil), line(cells{"type": "counter"}), "gpu_power_watts changed its type from gauge to counter"},
		{"another unit", line(nil), line(cells{"unit": "mW"}), "gpu_power_watts changed its unit from W to mW"},
		{"another unit of none", line(cells{"unit": "-"}), line(cells{"unit": "1"}), "gpu_power_watts changed its unit from - to 1"},
		{"another name when pushed", line(nil), line(cells{"otel": "gpu.power.draw"}), "gpu_power_watts changed its OpenTelemetry name from gpu.power to gpu.power.draw"},
		{"a label added", line(nil), line(cells{"labels": "gpu_uuid,sort,code,more"}), "gpu_power_watts has a new label more"},
		{"a first label", other, line(cells{"name": "gpu_other_watts", "labels": "sort", "members": "sort=max"}), "gpu_other_watts has a new label sort"},
		{"a label removed", line(nil), line(cells{"labels": "gpu_uuid,sort"}), "gpu_power_watts lost its label code"},
		{"an enum removed", line(nil), line(cells{"labels": "gpu_uuid,code", "members": "-"}), "gpu_power_watts lost its label sort"},
		{"all labels removed", line(cells{"labels": "sort"}), line(cells{"labels": "-", "members": "-"}), "gpu_power_watts lost its label sort"},
		{"labels in another order", line(nil), line(cells{"labels": "code,sort,gpu_uuid"}), ""},
		{"a member removed", line(nil), line(cells{"members": "sort=max"}), `gpu_power_watts lost sort="min"`},
		{"a member renamed", line(nil), line(cells{"members": "sort=max|minimum"}), `gpu_power_watts lost sort="min"`},
		{"a member added", line(nil), line(cells{"members": "sort=max|mean|min"}), ""},
		{"members in another order", line(nil), line(cells{"members": "sort=min|max"}), ""},
		{"an enum opened", line(nil), line(cells{"members": "-"}), `gpu_power_watts lost sort="max"` + "\n" + `gpu_power_watts lost sort="min"`},
		{"a label closed", line(nil), line(cells{"members": "sort=max|min;code=1"}), "gpu_power_watts has code limited to the values the spec lists"},
		{"a bucket removed", line(cells{"members": "le=0.5|1.5"}), line(cells{"members": "le=1.5"}), `gpu_power_watts lost le="0.5"`},
		{"a bucket added", line(cells{"members": "le=0.5"}), line(cells{"members": "le=0.5|1.5"}), ""},
		{"off by default", line(nil), line(cells{"enabled": "opt-in"}), "gpu_power_watts is off by default"},
		{"on by default", line(cells{"enabled": "opt-in"}), line(nil), ""},
		{"less stable", line(nil), line(cells{"stability": "development"}), "gpu_power_watts is no longer stable"},
		{"more stable", line(cells{"stability": "development"}), line(nil), ""},
		{"deprecated", line(nil), line(cells{"stability": "deprecated"}), ""},
		{"several at once", line(nil) + other, line(cells{"type": "counter", "labels": "gpu_uuid,sort"}),
			"gpu_other_watts is gone\ngpu_power_watts changed its type from gauge to counter\ngpu_power_watts lost its label code"},
	} {
		then, err := readCatalogue(head + c.then)
		if err != nil {
			t.Fatal(err)
		}
		now, err := readCatalogue(head + c.now)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range brokenPromises(then, now) {
			got = append(got, b.String())
		}
		if got := strings.Join(got, "\n"); got != c.want {
			t.Errorf("%s: said %q, want %q", c.what, got, c.want)
		}
	}
}

// A column that comes breaks nothing; one that goes was all that held its promise.
func TestCatalogueColumns(t *testing.T) {
	few, err := readCatalogue("name\ttype\nx\tgauge\n")
	if err != nil {
		t.Fatal(err)
	}
	more, err := readCatalogue("type\tname\tunit\ngauge\tx\tW\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := brokenPromises(few, more); len(got) > 0 {
		t.Errorf("a new column: %q", got)
	}
	if got := brokenPromises(more, few); len(got) != 1 {
		t.Errorf("a column gone: %q", got)
	}
	for _, text := range []string{"", "# nothing\n", "type\tunit\nx\ty\n", head} {
		if _, err := readCatalogue(text); err == nil {
			t.Errorf("%q was read as a catalogue", text)
		}
	}
}

// What the changelog must say, and where.
func TestAnnounced(t *testing.T) {
	const released = "## 1.0.0\n\n- [CHANGE] spec: gpu_a is gone.\n"
	const text = "## Unreleased\n\n- [CHANGE] spec: `gpu_b_watts` is now gpu_c.\n- [FEATURE] spec: gpu_f.\n\n" + released
	for _, c := range []struct {
		name, released string
		want           bool
	}{
		{"gpu_b_watts", released, true},
		{"gpu_c", released, true},
		{"gpu_b", released, false},
		{"b_watts", released, false},
		{"gpu_f", released, false}, // no change
		{"gpu_a", released, false}, // of the release before
		{"gpu_a", "", true},        // no release before
	} {
		if got := mentions(announced(text, c.released), c.name); got != c.want {
			t.Errorf("%s: named: %v, want %v", c.name, got, c.want)
		}
	}
}

// Which catalogues bind: every one while there is no release, then that of the newest one this
// branch builds on.
func TestPromisedIn(t *testing.T) {
	t.Setenv("GIT_DIR", filepath.Join(t.TempDir(), "elsewhere")) // as in a hook
	root := t.TempDir()
	do := func(args ...string) {
		t.Helper()
		settings := []string{
			"-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false",
			"-c", "core.hooksPath=/dev/null",
		}
		if _, err := (git{root}).run(append(settings, args...)...); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	commit := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		do("add", file)
		do("commit", "-q", "-m", "x")
	}
	want := func(what, tag string, texts ...string) {
		t.Helper()
		repo, err := openGit(root)
		if err != nil {
			t.Fatal(err)
		}
		got, commits, err := repo.promisedIn()
		if err != nil {
			t.Fatal(err)
		}
		var held []string
		for _, c := range commits {
			held = append(held, repo.at(c, catalogueFile))
		}
		if got != tag || fmt.Sprint(held) != fmt.Sprint(texts) {
			t.Errorf("%s: the catalogues %q of %q, want %q of %q", what, held, got, texts, tag)
		}
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git: ", err)
	}
	if _, err := openGit(root); err == nil {
		t.Error("a folder without history was taken for a repository")
	}
	do("init", "-q", "-b", "main")
	if _, err := openGit(root); err == nil {
		t.Error("a repository without a commit has no history")
	}
	commit("doc/README.md", "x")
	if _, err := openGit(filepath.Join(root, "doc")); err == nil {
		t.Error("a folder within a repository was taken for its root")
	}
	want("no catalogue", "")
	do("tag", "v0.1.0")
	want("a release without one", "")
	commit(catalogueFile, "a")
	commit("doc/README.md", "y")
	want("an unrelated commit", "", "a")
	commit(catalogueFile, "b")
	want("two commits", "", "a", "b")
	do("rm", "-q", catalogueFile)
	do("commit", "-q", "-m", "gone")
	want("removed", "", "a", "b")
	commit(catalogueFile, "c")
	do("tag", "-a", "-m", "x", "v1.0.0")
	want("a release", "v1.0.0", "c")
	do("switch", "-q", "-c", "next")
	commit(catalogueFile, "d")
	want("after a release", "v1.0.0", "c")
	do("tag", "nightly")
	do("tag", "v2.0.0")
	want("the next release", "v2.0.0", "d")
	do("switch", "-q", "main")
	want("another branch's release", "v1.0.0", "c")
}
