package packaging

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const unit = root + "/packaging/systemd/gpumeter.service"

// systemd has nothing to say of the unit, and finds it exposed no more than when this was written.
func TestUnit(t *testing.T) {
	needs(t, "systemd-analyze")
	// The program and its manual are not installed here.
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "gpumeter.service")
	text = []byte(strings.NewReplacer("/usr/bin/gpumeter", "/bin/true", "man:gpumeter(1) ", "").Replace(string(text)))
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if said := output(t, "sh", "-c", "systemd-analyze verify --man=no "+file+" 2>&1"); said != "" { // it succeeds whatever it finds
		t.Error(said)
	}
	output(t, "systemd-analyze", "security", "--offline=true", "--threshold=29", file) // of 100
}

// The scripts that run as root at installation are plain, and the manual is as manuals are.
func TestScriptsAndManual(t *testing.T) {
	t.Run("scripts", func(t *testing.T) {
		needs(t, "shellcheck")
		var scripts []string
		for _, pattern := range []string{"packaging/deb/*", "packaging/rpm/*", "packaging/prepare", "packaging/sbom", "contrib/slurm/*.sh", "tools/glibc/cc", "tools/glibc/fetch", "test/packaging/machine"} {
			found, err := filepath.Glob(filepath.Join(root, pattern))
			if err != nil || len(found) == 0 {
				t.Fatalf("no %s: %v", pattern, err)
			}
			scripts = append(scripts, found...)
		}
		output(t, "shellcheck", append(scripts, "--severity=warning")...)
	})
	t.Run("manual", func(t *testing.T) {
		needs(t, "mandoc", "man", "dpkg-deb")
		dir := t.TempDir()
		output(t, "dpkg-deb", "-x", made(t, "gpumeter_*_amd64.deb"), dir)
		page := filepath.Join(dir, "usr/share/man/man1/gpumeter.1.gz")
		output(t, "mandoc", "-Tlint", "-Wstyle", page)
		if said := output(t, "sh", "-c", "LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -l "+page+" 2>&1 >/dev/null"); said != "" {
			t.Error(said)
		}
		output(t, "bash", "-n", filepath.Join(dir, "usr/share/bash-completion/completions/gpumeter"))
	})
}

// Every variable in the file of settings is one, and all are commented out.
func TestSettings(t *testing.T) {
	text, err := os.ReadFile(root + "/packaging/gpumeter.default")
	if err != nil {
		t.Fatal(err)
	}
	manual := output(t, "sh", "-c", "cd "+root+" && CGO_ENABLED=0 go run ./exporter/cmd/gpumeter man 2026-01-01")
	n := 0
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if !strings.HasPrefix(line, "#") {
			t.Errorf("%q is set", line)
		}
		if m := regexp.MustCompile(`^#([A-Z_]+)=`).FindStringSubmatch(line); m != nil {
			n++
			if !strings.Contains(manual, `\%[`+m[1]+"]\n") {
				t.Errorf("no flag has %s", m[1])
			}
		}
	}
	if n < 5 {
		t.Errorf("%d variables", n)
	}
}
