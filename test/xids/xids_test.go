// Package xids holds the table of XID errors in spec/data against NVIDIA's catalogue.
package xids

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// facts is the snapshot of the catalogue, its date in the name.
const facts = "nvidia-2025-10-29.tsv"

// fact is what the catalogue says of a code; the immediate action may be empty.
type fact struct{ mnemonic, immediate string }

// catalogue reads the facts by code.
func catalogue(t *testing.T) map[string]fact {
	t.Helper()
	raw, err := os.ReadFile(facts)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]fact{}
	for line := range strings.Lines(string(raw)) {
		cells := append(strings.Split(strings.TrimSuffix(line, "\n"), "\t"), "")
		if strings.HasPrefix(line, "#") || cells[0] == "code" {
			continue
		}
		out[cells[0]] = fact{cells[1], cells[2]}
	}
	return out
}

// entry is a code in our table.
type entry struct {
	Code, Mnemonic, Severity, Who, Action, Note string
}

func table(t *testing.T) (date string, xids []entry) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "spec", "data", "xids.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Date string
		XIDs []entry `yaml:"xids"`
	}
	if err := yaml.Unmarshal(raw, &f); err != nil {
		t.Fatal(err)
	}
	return f.Date, f.XIDs
}

// asks is the class of each immediate action of the catalogue that has one of its own.
var asks = map[string]string{
	"RESET_GPU": "reset", "RESTART_BM": "reboot", "RESTART_VM": "reboot", "RESTART_APP": "application",
	"IGNORE": "none", "CHECK_MECHANICALS": "inspect",
}

// Every code of the catalogue is in the table under its name, and no other. Its class is that of the
// catalogue's immediate action, or its note says why not.
func TestCodes(t *testing.T) {
	known := catalogue(t)
	date, xids := table(t)
	if !strings.Contains(facts, date) {
		t.Errorf("the table is of %s, the facts are in %s", date, facts)
	}
	for _, x := range xids {
		f, ok := known[x.Code]
		delete(known, x.Code)
		switch {
		case !ok:
			t.Errorf("xid %s is not in the catalogue", x.Code)
		case x.Mnemonic != f.mnemonic:
			t.Errorf("xid %s is called %s, in the catalogue %s", x.Code, x.Mnemonic, f.mnemonic)
		case x.Action != asks[f.immediate] && x.Note == "":
			t.Errorf("xid %s asks for %s, in the catalogue %q, and no note says why", x.Code, x.Action, f.immediate)
		}
	}
	for code := range known {
		t.Errorf("xid %s of the catalogue is not in the table", code)
	}
}

// What is worth waking someone for is critical; what the application does is not, and what only
// informs asks for nothing.
func TestSeverities(t *testing.T) {
	want := map[string][]string{
		"critical": {"48", "62", "64", "74", "79", "94", "95", "119", "120"},
		"warning":  {"13", "31", "43"},
		"info":     {"63", "92"},
	}
	_, xids := table(t)
	for _, x := range xids {
		for severity, codes := range want {
			if slices.Contains(codes, x.Code) && x.Severity != severity {
				t.Errorf("xid %s is %s, want %s", x.Code, x.Severity, severity)
			}
		}
		if x.Severity == "info" && x.Action != "none" {
			t.Errorf("xid %s only informs, and asks for %s", x.Code, x.Action)
		}
		if x.Severity == "critical" && x.Action == "none" {
			t.Errorf("xid %s is critical, and asks for nothing", x.Code)
		}
		if x.Who == "nobody" && x.Action != "none" {
			t.Errorf("xid %s asks nobody for %s", x.Code, x.Action)
		}
	}
}
