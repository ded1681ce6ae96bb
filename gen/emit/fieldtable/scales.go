package fieldtable

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/resolve"
)

// scale is the factor of one metric that a source reads by a call.
type scale struct {
	Name         string // Go constant
	Metric, Call string
	Scale        float64
}

// scales returns, for each source whose calls have a scale, a file of constants: the factors stand in
// the spec, and the source's code names them.
func scales(m *resolve.Model) ([]emit.File, error) {
	bySource := map[string][]scale{}
	for _, x := range m.Metrics {
		for _, ref := range x.Sources {
			if ref.Value.Call == "" || ref.Value.Scale == 0 || len(ref.Value.Field)+len(ref.Value.Fields) > 0 {
				continue // the scale beside numbered fields is theirs
			}
			next := scale{"scale" + x.Group.GoName + x.GoField, x.Name, ref.Value.Call, ref.Value.Scale}
			same := func(s scale) bool { return s.Name == next.Name }
			if !slices.ContainsFunc(bySource[ref.Key], same) { // a group of several scopes has it once
				bySource[ref.Key] = append(bySource[ref.Key], next)
			}
		}
	}
	var out []emit.File
	for _, source := range slices.Sorted(maps.Keys(bySource)) {
		data := struct {
			Source string
			Scales []scale
		}{source, bySource[source]}
		file, err := emit.Go(templates, "scales", "exporter/source/"+source+"/zz_scales.go", data)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", source, err)
		}
		out = append(out, file)
	}
	return out, nil
}
