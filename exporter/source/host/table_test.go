package host

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Each metric comes from the file that the spec names for it: without the file it is not supported,
// and without the other files it has its value.
func TestTable_MetricsComeFromTheirFiles(t *testing.T) {
	for _, missing := range parsed {
		dir := proc(t, stat, meminfo)
		if err := os.Remove(filepath.Join(dir, missing.name)); err != nil {
			t.Fatal(err)
		}
		h := readHost(t, open(t, dir))
		for _, entry := range hostFiles {
			for i, v := range entry.to(h) {
				want := (*metric.Reason)(nil)
				if entry.file == missing.name {
					want = metric.Unsupported
				}
				if got := v.Why(); got != want {
					t.Errorf("without %s: %s[%d], of file %s: %v, want %v", missing.name, entry.metric, i, entry.file, got, want)
				}
			}
		}
	}
}

// Each file of the spec has a parser, each parser is of a file of the spec, and no number of the spec
// is scaled: procfs returns base units.
func TestTable_FilesHaveParsers(t *testing.T) {
	named := map[string]bool{}
	for _, entry := range hostFiles {
		named[entry.file] = true
		if entry.scale != 1 {
			t.Errorf("%s: scale %v, want 1", entry.metric, entry.scale)
		}
	}
	for _, file := range parsed {
		if !named[file.name] {
			t.Errorf("the spec has no metric of file %s", file.name)
		}
		delete(named, file.name)
	}
	for file := range named {
		t.Errorf("no parser for file %s of the spec", file)
	}
}

// The table has each metric that the spec lists for the source.
func TestTable_IsComplete(t *testing.T) {
	var all []string
	for _, family := range telemetry.HostFamilies {
		if slices.Contains(family.Desc.Sources, "host") {
			all = append(all, family.Desc.Name)
		}
	}
	if len(all) != len(hostFiles) {
		t.Errorf("the spec lists %d metrics, the table has %d: %v", len(all), len(hostFiles), all)
	}
}
