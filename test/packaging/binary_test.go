package packaging

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// newest is the newest version of glibc that a binary asks for, as in 2.17.
func newest(file string) (version string, symbols []string, err error) {
	f, err := elf.Open(file)
	if err != nil {
		return "", nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	imported, err := f.ImportedSymbols()
	if err != nil {
		return "", nil, err
	}
	var most []int
	for _, s := range imported {
		symbols = append(symbols, s.Name)
		text, ok := strings.CutPrefix(s.Version, "GLIBC_")
		if !ok {
			continue
		}
		var v []int
		for part := range strings.SplitSeq(text, ".") {
			n, err := strconv.Atoi(part)
			if err != nil {
				return "", nil, fmt.Errorf("%s: version %s", s.Name, s.Version)
			}
			v = append(v, n)
		}
		if slices.Compare(v, most) > 0 {
			most, version = v, text
		}
	}
	return version, symbols, nil
}

// What the binaries ask of the C library, RHEL 8 and older have; and they can load a driver.
func TestGlibc(t *testing.T) {
	for _, a := range architectures {
		file := made(t, filepath.Join(a.folder, "gpumeter"))
		version, symbols, err := newest(file)
		if err != nil {
			t.Fatal(err)
		}
		// Glibc on arm64 began with 2.17, so that this is also what one binary asks for.
		if want := map[string]string{"amd64": "2.3.3", "arm64": glibc}[a.deb]; version != want {
			t.Errorf("%s asks for glibc %s, want %s", a.deb, version, want)
		}
		if !slices.Contains(symbols, "dlopen") {
			t.Errorf("%s can load no driver: it was built without cgo", a.deb)
		}
	}
}

// The bills of materials name the binary's version, its modules, and no time but the commit's.
func TestBill(t *testing.T) {
	commit := strings.TrimSpace(output(t, "git", "-C", root, "show", "-s", "--format=%cI", "HEAD"))
	for _, a := range architectures {
		text, err := os.ReadFile(made(t, "gpumeter_*_linux_"+a.deb+".cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		var bill struct {
			BOMFormat string
			Metadata  struct {
				Timestamp string
				Component struct{ Name, Version string }
			}
			Components []struct{ PURL string }
		}
		if err := json.Unmarshal(text, &bill); err != nil {
			t.Fatal(err)
		}
		if bill.BOMFormat != "CycloneDX" || bill.Metadata.Component.Name != "github.com/gpumeter/gpumeter" {
			t.Errorf("%s is about %+v", bill.BOMFormat, bill.Metadata)
		}
		if !strings.HasPrefix(bill.Metadata.Component.Version, "v") {
			t.Errorf("version %q", bill.Metadata.Component.Version)
		}
		if len(bill.Metadata.Timestamp) < 10 || bill.Metadata.Timestamp[:10] > commit[:10] {
			t.Errorf("of %s, the commit is of %s", bill.Metadata.Timestamp, commit)
		}
		var nvml bool
		for _, c := range bill.Components {
			nvml = nvml || strings.HasPrefix(c.PURL, "pkg:golang/github.com/NVIDIA/go-nvml@") || strings.HasPrefix(c.PURL, "pkg:golang/github.com/!n!v!i!d!i!a/go-nvml@")
		}
		if !nvml || len(bill.Components) < 30 {
			t.Errorf("%d components, go-nvml among them: %v", len(bill.Components), nvml)
		}
	}
}
