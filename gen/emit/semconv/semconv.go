// Package semconv emits the spec as a registry of OpenTelemetry semantic conventions, in weaver's definition/2 format.
package semconv

import (
	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

const folder = "spec/semconv/"

// Emitter writes a manifest, the attributes, one attribute group per scope and one file per group
// of metrics.
var Emitter = emit.Emitter{
	Name: "semconv",
	Doc:  "the spec as an OpenTelemetry registry",
	Owns: []string{folder + "*.yaml"},
	Run:  run,
}

const (
	format = "definition/2"

	// version is that of the vocabulary. It rises when a name is added, deprecated or removed.
	version = "0.1.0"

	// space is the one annotation that is ours, and what our ids begin with.
	space = "gpumeter"
)

func run(m *resolve.Model) ([]emit.File, error) {
	type source struct {
		name, from string
		doc        mapping
	}
	sources := []source{
		{"manifest", "gen/emit/semconv", manifest()},
		{"attributes", "spec/attributes.yaml", attributes(m)},
		{"scopes", "spec/scopes.yaml", scopes(m)},
	}
	for _, g := range m.Groups {
		sources = append(sources, source{g.Group.Group, "spec/metrics/" + g.Group.Group + ".yaml", group(m, g)})
	}
	var files []emit.File
	for _, s := range sources {
		f, err := file(s.name, s.from, s.doc)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// manifest names the registry and the one it builds on.
func manifest() mapping {
	return mapping{
		{"schema_url", "https://gpumeter.github.io/schemas/" + version},
		{"description", "What gpumeter says of accelerators, of the work on them and of itself."},
		{"stability", "development"},
		{"dependencies", list{mapping{
			{"schema_url", "https://opentelemetry.io/schemas/" + resolve.OfficialVersion},
			{"registry_path", "https://github.com/open-telemetry/semantic-conventions@v" + resolve.OfficialVersion + "[model]"},
		}}},
	}
}

// scopes makes one internal attribute group of each scope whose series carry attributes.
func scopes(m *resolve.Model) mapping {
	var groups list
	for _, s := range m.Scopes {
		if len(s.AllAttributes()) == 0 {
			continue
		}
		var refs list
		if s.Within != nil && len(s.Within.AllAttributes()) > 0 {
			refs = append(refs, mapping{{"ref_group", groupID(s.Within)}})
		}
		for _, a := range s.Attributes {
			refs = append(refs, reference(a, level(m, a, s, false)))
		}
		groups = append(groups, mapping{{"id", groupID(s)}, {"visibility", "internal"}, {"attributes", refs}})
	}
	doc := mapping{{"file_format", format}}
	if len(groups) > 0 {
		doc.add("attribute_groups", groups)
	}
	return doc
}

func groupID(s *resolve.Scope) string { return space + ".scope." + s.Name }

// stability is what is written, or what is meant where nothing is.
func stability(written string) string {
	if written == "" {
		return "development"
	}
	return written
}

// deprecated says why, in the format's words: renamed only when nothing but the name has changed.
func deprecated(d *schema.Deprecated, alike bool) mapping {
	note := d.Explaining
	if note == "" {
		note = "Deprecated since " + d.Since + "."
	}
	switch {
	case d.RenamedTo == "":
		return mapping{{"reason", "obsoleted"}, {"note", note}}
	case alike:
		return mapping{{"reason", "renamed"}, {"renamed_to", d.RenamedTo}, {"note", note}}
	}
	return mapping{{"reason", "uncategorized"}, {"note", "Use " + d.RenamedTo + ". " + note}}
}
