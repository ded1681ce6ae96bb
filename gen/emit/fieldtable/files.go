package fieldtable

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

// fileTables are the tables of one source, one for each scope it reads.
type fileTables struct {
	Source string
	Scopes []*fileScope
}

// fileScope is what a source reads from files for one scope.
type fileScope struct {
	Name, Type string // of the Go table, and of what is read, in telemetry
	Entries    []fileEntry
}

// fileEntry is one metric that a source reads from a file.
type fileEntry struct {
	Metric, File string
	Scale        float64
	To           string // Go expression below the struct
	Array        bool   // To is an array, by the metric's attribute
}

// files returns one file for each source that reads files.
func files(m *resolve.Model) ([]emit.File, error) {
	bySource := map[string]*fileTables{}
	for _, x := range m.Metrics {
		for _, ref := range x.Sources {
			if ref.Value.File == "" {
				continue
			}
			if bySource[ref.Key] == nil {
				bySource[ref.Key] = &fileTables{Source: ref.Key}
			}
			if err := bySource[ref.Key].add(x, ref.Value); err != nil {
				return nil, fmt.Errorf("%s: source %s: %w", x.Name, ref.Key, err)
			}
		}
	}
	var out []emit.File
	for _, source := range slices.Sorted(maps.Keys(bySource)) {
		file, err := emit.Go(templates, "files", "exporter/source/"+source+"/zz_table.go", bySource[source])
		if err != nil {
			return nil, err
		}
		out = append(out, file)
	}
	return out, nil
}

// add adds one metric to the table of its scope.
func (t *fileTables) add(m *resolve.Metric, ref schema.SourceRef) error {
	if !m.Closed() || len(m.Attributes) > 1 || m.Instrument == "histogram" {
		return fmt.Errorf("file %s: a table of files has single numbers, and numbers by one enum attribute", ref.File)
	}
	name := m.Scope.Name + "Files"
	at := slices.IndexFunc(t.Scopes, func(s *fileScope) bool { return s.Name == name })
	if at < 0 {
		at = len(t.Scopes)
		t.Scopes = append(t.Scopes, &fileScope{Name: name, Type: m.Scope.GoName})
	}
	e := fileEntry{Metric: m.Name, File: ref.File, Scale: ref.Scale, To: m.Group.GoName + "." + m.GoField, Array: len(m.Attributes) > 0}
	if e.Scale == 0 {
		e.Scale = 1
	}
	t.Scopes[at].Entries = append(t.Scopes[at].Entries, e)
	return nil
}
