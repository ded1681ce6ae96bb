package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type fact struct{ Words []string }

func TestKeeps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "when missing")
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got fact
	if there, err := s.Load("words", &got); there || err != nil {
		t.Errorf("before anything was saved: %v, %v", there, err)
	}
	for _, words := range [][]string{{"one"}, {"two", "three"}} {
		if err := s.Save("words", fact{words}); err != nil {
			t.Fatal(err)
		}
	}
	if there, err := s.Load("words", &got); !there || err != nil || strings.Join(got.Words, " ") != "two three" {
		t.Errorf("%v, %v, %v", there, err, got)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v; only the file itself is to stay", files, err)
	}
}

func TestNowhere(t *testing.T) {
	s, err := Open("")
	if err != nil || s.Keeps() {
		t.Fatal(err, s)
	}
	if err := s.Save("words", fact{}); err != nil {
		t.Error(err)
	}
	if there, err := s.Load("words", &fact{}); there || err != nil || s.Faults() != 0 {
		t.Error(there, err, s.Faults())
	}
}

// What can not be read is named, and does not stop the next fact from being kept.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "words.json")
	for name, raw := range map[string]string{"half written": `{"Words": ["o`, "huge": strings.Repeat(" ", maxFile+1), "empty": ""} {
		if err := os.WriteFile(path, []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		if there, err := s.Load("words", &fact{}); there || err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v; want an error that names the file", name, there, err)
		}
	}
	if s.Faults() != 3 {
		t.Errorf("%d faults, want 3", s.Faults())
	}
	if err := s.Save("words", fact{[]string{"again"}}); err != nil {
		t.Error(err)
	}
	var got fact
	if there, err := s.Load("words", &got); !there || err != nil || got.Words[0] != "again" {
		t.Error(there, err, got)
	}
}

// A file where the directory should be, and a directory that is gone, are errors, not lost silently.
func TestNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(file, "below")); err == nil {
		t.Error("a directory below a file was opened")
	}
	gone := t.TempDir()
	s, err := Open(gone)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if err := s.Save("words", fact{}); err == nil {
		t.Error("saved into a directory that is gone")
	}
	if s.Faults() != 1 {
		t.Errorf("%d faults, want 1", s.Faults())
	}
}
