package config

import (
	"io"
	"regexp"
	"strings"
	"testing"
)

// Every command and flag is in the manual once, in lines that roff takes as they are meant.
func TestManual(t *testing.T) {
	var page strings.Builder
	if err := Manual(&page, "v1.2.3", "2026-01-02"); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	if !strings.HasPrefix(text, ".TH GPUMETER 1 2026-01-02 \"gpumeter v1.2.3\"\n.SH NAME\n") {
		t.Errorf("begins with %.80q", text)
	}
	k, err := parser(new(Config), io.Discard, environment())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range k.Model.Leaves(true) {
		if !strings.Contains(text, "\n.B "+c.Name) {
			t.Errorf("no command %s", c.Name)
		}
		for _, f := range flags(c) {
			if n := len(regexp.MustCompile(`(?m)^\.B `+regexp.QuoteMeta(roff("--"+f.Name))+`(=|$)`).FindAllString(text, -1)); n != 1 {
				t.Errorf("--%s is there %d times", f.Name, n)
			}
		}
	}
	if strings.Contains(text, ".B man\n") {
		t.Error("a hidden command is in it")
	}
	for line := range strings.Lines(text) {
		if len(line) > 80 || strings.HasSuffix(line, " \n") || regexp.MustCompile(`\. [A-Z]`).MatchString(line) {
			t.Errorf("roff wants short lines, and each sentence on its own: %q", line)
		}
	}
}

func TestParagraph(t *testing.T) {
	for text, want := range map[string]string{
		"One. Two":               "One.\nTwo",
		".hidden 'quote'":        `\&.hidden 'quote'`,
		`a-b "c" \`:              `a\-b \(dqc\(dq \e`,
		strings.Repeat("x ", 60): strings.Repeat("x ", 39) + "x\n" + strings.Repeat("x ", 19) + "x",
	} {
		if got := paragraph(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
