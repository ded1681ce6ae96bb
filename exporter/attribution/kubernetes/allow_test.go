package kubernetes

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func TestAllowed(t *testing.T) {
	all := map[string]string{
		"app": "web", "team": "a", "app.kubernetes.io/name": "n", "app.kubernetes.io/part-of": "p", "secret": "s",
		"bad name!": "x", "bad-value": "a b", "long": strings.Repeat("x", 64),
	}
	for _, c := range []struct {
		patterns []string
		want     string
		broken   int
	}{
		{nil, "map[]", 0}, // closed unless opened
		{[]string{"app"}, "map[app:web]", 0},
		{[]string{"app.kubernetes.io/*"}, "map[app.kubernetes.io/name:n app.kubernetes.io/part-of:p]", 0},
		{[]string{"*/name", "team"}, "map[app.kubernetes.io/name:n team:a]", 0},
		{[]string{"app*"}, "map[app:web app.kubernetes.io/name:n app.kubernetes.io/part-of:p]", 0},
		{[]string{"ap"}, "map[]", 0},
		{[]string{"bad-value", "long"}, "map[]", 2},
		{[]string{"*"}, "map[app:web app.kubernetes.io/name:n app.kubernetes.io/part-of:p secret:s team:a]", 3},
	} {
		a, err := newAllowed(c.patterns)
		if err != nil {
			t.Fatal(err)
		}
		kept, broken := a.pick(all, isLabel)
		if got := fmt.Sprint(kept); got != c.want || broken != c.broken {
			t.Errorf("%q: got %s, %d broken; want %s, %d", c.patterns, got, broken, c.want, c.broken)
		}
	}
	for _, p := range []string{"", "a b", "a?", "[a]", "ä", "/name", "team/", "a/b/c", "*/a/*", "-x", strings.Repeat("x", 318)} {
		if _, err := newAllowed([]string{p}); err == nil {
			t.Errorf("%.20q was taken for a pattern", p)
		}
	}
}

// Of more than are kept, the same ones are kept each time.
func TestAllowedIsBounded(t *testing.T) {
	all := map[string]string{}
	for i := range 2 * mostKept {
		all[fmt.Sprintf("l%03d", i)] = "v"
	}
	kept, broken := allowed{"*"}.pick(all, isLabel)
	if len(kept) != mostKept || broken != mostKept || kept["l000"] != "v" {
		t.Errorf("%d kept, %d not", len(kept), broken)
	}
}

func FuzzMatches(f *testing.F) {
	for _, s := range []string{"*", "a*", "*a", "a*b*c", "**", "a"} {
		f.Add(s, "abc")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if _, err := newAllowed([]string{pattern}); err != nil || strings.ContainsAny(name, "\n") {
			return
		}
		want := regexp.MustCompile(`^(?s)` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + `$`).MatchString(name)
		if got := matches(pattern, name); got != want {
			t.Errorf("%q of %q: got %v", name, pattern, got)
		}
	})
}
