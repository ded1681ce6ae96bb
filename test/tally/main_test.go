package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	const (
		run  = `{"Action":"run","Package":"p","Test":"TestA"}`
		talk = `{"Action":"output","Package":"p","Test":"TestA","Output":"because\n"}`
		pass = `{"Action":"pass","Package":"p","Test":"TestA"}`
		skip = `{"Action":"skip","Package":"p","Test":"TestA"}`
		fail = `{"Action":"fail","Package":"p","Test":"TestA"}`
		good = `{"Action":"pass","Package":"p"}`
		bad  = `{"Action":"fail","Package":"p"}`
	)
	for name, x := range map[string]struct {
		in, summary, said string
		ok                bool
	}{
		"good":       {run + talk + pass + good, "1 passed, 0 failed, 0 skipped", "", true},
		"skipped":    {run + talk + skip + run + pass + good, "1 passed, 0 failed, 1 skipped", "because", true},
		"failed":     {run + talk + fail + bad, "0 passed, 1 failed, 0 skipped", "because", false},
		"not built":  {`{"Action":"build-output","ImportPath":"p","Output":"undefined\n"}` + bad, "0 passed, 1 failed, 0 skipped", "undefined", false},
		"died":       {run + talk + bad, "0 passed, 1 failed, 0 skipped", "because", false},
		"no tests":   {good, "0 passed, 0 failed, 0 skipped", "", false},
		"not a test": {"make: building\n" + run + pass, "1 passed, 0 failed, 0 skipped", "make: building", true},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			summary, ok, err := tally(strings.NewReader(strings.ReplaceAll(x.in, "}{", "}\n{")), &out)
			if summary.String() != x.summary || ok != x.ok || err != nil {
				t.Errorf("got %q, %v, %v; want %q, %v", summary, ok, err, x.summary, x.ok)
			}
			if x.said == "" && strings.Contains(out.String(), "because") || !strings.Contains(out.String(), x.said) {
				t.Errorf("said %q, want %q in it", out.String(), x.said)
			}
		})
	}
}

// Runs that end in one file are counted together.
func TestRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "summary")
	for _, n := range []counts{{passed: 3, failed: 1}, {passed: 2, failed: 1, skipped: 1}} {
		if err := record(file, n); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "5 passed, 2 failed, 1 skipped\n" {
		t.Errorf("got %q, %v", text, err)
	}
	if err := os.WriteFile(file, []byte("all is well\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := record(file, counts{}); err == nil {
		t.Error("what is no summary was added to")
	}
}

func TestTallyHugeLine(t *testing.T) {
	if _, _, err := tally(strings.NewReader(strings.Repeat("x", 17<<20)), io.Discard); err == nil {
		t.Error("a line beyond the buffer was not noticed")
	}
}
