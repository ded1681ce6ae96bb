package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/safefile"
	"github.com/gpumeter/gpumeter/exporter/source/sim"
)

// The faults of a simulated node are those its file names at each reading; what is wrong with the
// file is said once, and costs no more than what is wrong.
func TestFaultFile(t *testing.T) {
	slow, err := sim.ParseFaults("engine-slow")
	if err != nil {
		t.Fatal(err)
	}
	path, log := filepath.Join(t.TempDir(), "faults"), new(bytes.Buffer)
	f := &faultFile{file: safefile.File{Path: path, Limit: maxFaults}, log: slog.New(slog.NewTextHandler(log, nil))}
	for _, c := range []struct {
		text string // "-": no file
		want sim.Faults
		said string
	}{
		{"-", 0, ""},
		{"engine-slow\n", slow, `level=INFO msg="simulated faults"`},
		{"engine-slow\n", slow, ""},
		{"engine-slow,engine-slo", slow, `no fault \"engine-slo\"; did you mean`},
		{"engine-slow,engine-slo", slow, ""},
		{strings.Repeat("engine-slow ", 1000), 0, "the limit is 4096 bytes"},
		{"", 0, "level=INFO"},
		{"engine-slow", slow, "level=INFO"},
		{"-", 0, "level=INFO"},
	} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if c.text != "-" {
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		log.Reset()
		if got := f.read(); got != c.want || (log.Len() > 0) != (c.said != "") || !strings.Contains(log.String(), c.said) {
			t.Errorf("%.30q: %b, and %q; want %b and %q", c.text, got, log, c.want, c.said)
		}
	}
}
