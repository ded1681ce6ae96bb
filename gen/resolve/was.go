package resolve

import (
	"slices"
	"strings"

	"github.com/gpumeter/gpumeter/gen/schema"
)

// agree holds the answers and the was entries of the metrics against each other.
func (r *resolver) agree(c *Compat) {
	answered := map[string][]*Answer{} // by name there
	for _, s := range c.Sections {
		for _, a := range s.Answers {
			for _, f := range a.There {
				answered[f.Name] = append(answered[f.Name], a)
			}
			if a.As == "differs" || !a.oldest(c) {
				continue
			}
			if m := a.Metric; m != nil && !slices.ContainsFunc(m.Was, func(w schema.Was) bool { return w.System == c.System && a.has(w.Name) }) {
				r.faults.Add(a.Pos, "%s: is answered with %s, whose was does not name it; add {system: %s, name: %s} there",
					a.what(), m.Name, c.System, a.There[0].Name)
			}
		}
	}
	for _, g := range r.model.Groups {
		for _, m := range g.Metrics {
			for _, w := range m.Was {
				if w.System == c.System && !slices.ContainsFunc(answered[w.Name], func(a *Answer) bool { return a.uses(m) }) {
					r.faults.Add(w.Pos, "%s: was %s %s, and %s", m.Name, w.System, w.Name, others(c.File, answered[w.Name]))
				}
			}
		}
	}
}

// oldest says whether the answer has a name in the first dialect.
func (a *Answer) oldest(c *Compat) bool {
	return slices.ContainsFunc(a.There, func(f *Foreign) bool { return f.Dialect == c.Dialects[0].Name })
}

func (a *Answer) has(name string) bool {
	return slices.ContainsFunc(a.There, func(f *Foreign) bool { return f.Name == name })
}

// uses says whether the answer is of the entry m, in whatever scope.
func (a *Answer) uses(m *Metric) bool {
	same := func(x *Metric) bool { return x != nil && x.Group == m.Group && x.GoField == m.GoField }
	return same(a.Metric) || slices.ContainsFunc(a.From, same)
}

// others says what the name is answered with instead.
func others(file string, answers []*Answer) string {
	if len(answers) == 0 {
		return file + " has no such name"
	}
	var out []string
	for _, a := range answers {
		text := "no metric"
		if a.Metric != nil {
			text = a.Metric.Name
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return file + " answers it with " + strings.Join(out, " and ")
}
