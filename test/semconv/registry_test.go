package semconv

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// registry is what of the registry's files is checked here.
type registry struct {
	Dependencies []struct {
		SchemaURL    string `yaml:"schema_url"`
		RegistryPath string `yaml:"registry_path"`
	}
	Attributes []attribute
	Groups     []struct {
		ID         string
		Attributes []reference
	} `yaml:"attribute_groups"`
	Metrics     []metric
	Refinements []metric `yaml:"metric_refinements"`
}

type attribute struct {
	Key         string
	Type        yaml.Node
	Examples    []any
	Annotations struct{ Gpumeter notes }
}

// members are the values of an enum, in order.
func (a attribute) members() []string {
	var kind struct{ Members []struct{ Value string } }
	if a.Type.Kind != yaml.MappingNode || a.Type.Decode(&kind) != nil {
		return nil
	}
	var out []string
	for _, m := range kind.Members {
		out = append(out, m.Value)
	}
	return out
}

// notes say which official attributes a twin makes of one of ours, and which values of an official
// enum we use.
type notes struct {
	Members []string
	Semconv []struct {
		Key    string
		Values map[string]string
	}
}

type reference struct {
	Ref         string
	RefGroup    string `yaml:"ref_group"`
	Annotations struct{ Gpumeter notes }
}

type metric struct {
	ID, Name, Ref, Instrument, Unit string
	Attributes                      []reference
	Annotations                     struct {
		Gpumeter struct {
			Instrument, Unit string // of a refinement
			Semconv          *struct {
				Name       string
				Attributes map[string]string
			}
		}
	}
}

// read adds the files' entries up.
func read(t *testing.T, files map[string][]byte) registry {
	t.Helper()
	var all registry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var one registry
		if err := yaml.Unmarshal(files[name], &one); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all.Dependencies = append(all.Dependencies, one.Dependencies...)
		all.Attributes = append(all.Attributes, one.Attributes...)
		all.Groups = append(all.Groups, one.Groups...)
		all.Metrics = append(all.Metrics, one.Metrics...)
		all.Refinements = append(all.Refinements, one.Refinements...)
	}
	return all
}

// check says what is wrong with a registry, given the official one.
func check(r registry, f facts) []string {
	c := checker{registry: r, facts: f, ours: map[string]attribute{}, groups: map[string][]reference{}, used: map[string]bool{}}
	c.definitions()
	for _, g := range r.Groups {
		c.references("group "+g.ID, g.Attributes)
	}
	for _, m := range r.Metrics {
		c.metric(m.Name, m)
		if _, taken := f.metrics[m.Name]; taken {
			c.bad("metric %s: OpenTelemetry defines it; it is to be refined", m.Name)
		}
	}
	for _, m := range r.Refinements {
		c.refinement(m)
	}
	for _, a := range r.Attributes {
		if !c.used[a.Key] {
			c.bad("attribute %s: nothing refers to it", a.Key)
		}
	}
	return c.faults
}

type checker struct {
	registry
	facts
	ours   map[string]attribute
	groups map[string][]reference
	used   map[string]bool
	faults []string
}

func (c *checker) bad(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// definitions wants the right dependency, and attributes and groups that are ours alone.
func (c *checker) definitions() {
	if len(c.Dependencies) != 1 || !strings.HasSuffix(c.Dependencies[0].SchemaURL, "/"+c.version) ||
		!strings.Contains(c.Dependencies[0].RegistryPath, "@v"+c.version+"[") {
		c.bad("manifest: depends on %v; official.txt is of %s", c.Dependencies, c.version)
	}
	for _, a := range c.registry.Attributes {
		_, taken := c.facts.attributes[a.Key]
		if _, twice := c.ours[a.Key]; twice {
			c.bad("attribute %s: defined twice", a.Key)
		}
		if taken || c.moved[a.Key] {
			c.bad("attribute %s: OpenTelemetry defines it", a.Key)
		}
		if a.Type.Value == "string" && len(a.Examples) == 0 {
			c.bad("attribute %s: a string needs examples", a.Key)
		}
		c.ours[a.Key] = a
		c.counterparts("attribute "+a.Key, a.Annotations.Gpumeter, a.members())
	}
	for _, g := range c.Groups {
		if _, twice := c.groups[g.ID]; twice {
			c.bad("group %s: defined twice", g.ID)
		}
		c.groups[g.ID] = g.Attributes
	}
}

// counterparts wants official attributes, and values they have.
func (c *checker) counterparts(what string, n notes, members []string) {
	for _, s := range n.Semconv {
		if _, ok := c.facts.attributes[s.Key]; !ok {
			c.bad("%s: %s is no official attribute", what, s.Key)
		}
		for _, m := range members {
			word := m
			if w, ok := s.Values[m]; ok {
				word = w
			}
			if !c.knows(s.Key, word) {
				c.bad("%s: %s has no value %s", what, s.Key, word)
			}
		}
		for m := range s.Values {
			if !slices.Contains(members, m) {
				c.bad("%s: %s is none of its values", what, m)
			}
		}
	}
}

// references wants every reference to lead somewhere.
func (c *checker) references(what string, refs []reference) {
	for _, r := range refs {
		_, ours := c.ours[r.Ref]
		_, official := c.facts.attributes[r.Ref]
		_, group := c.groups[r.RefGroup]
		if r.RefGroup != "" && !group {
			c.bad("%s: no group %s", what, r.RefGroup)
		}
		if r.Ref != "" && !ours && !official {
			c.bad("%s: %s is neither ours nor official", what, r.Ref)
		}
		c.used[r.Ref] = true
		for _, m := range r.Annotations.Gpumeter.Members {
			if !c.knows(r.Ref, m) {
				c.bad("%s: %s has no value %s", what, r.Ref, m)
			}
		}
		c.counterparts(what+": "+r.Ref, r.Annotations.Gpumeter, r.Annotations.Gpumeter.Members)
	}
}

// refinement wants an official metric of the same instrument and unit, which it takes over.
func (c *checker) refinement(m metric) {
	of, ok := c.metrics[m.Ref]
	n := m.Annotations.Gpumeter
	switch {
	case !ok:
		c.bad("refinement %s: %s is no official metric", m.ID, m.Ref)
	case of.instrument != n.Instrument || of.unit != n.Unit:
		c.bad("refinement %s: a %s in %q, officially a %s in %q", m.ID, n.Instrument, n.Unit, of.instrument, of.unit)
	}
	m.Unit = n.Unit
	c.metric(m.Ref, m)
}

// metric wants references that lead somewhere, and a twin with all it requires.
func (c *checker) metric(name string, m metric) {
	c.references("metric "+name, m.Attributes)
	twin := m.Annotations.Gpumeter.Semconv
	if twin == nil {
		return
	}
	of, ok := c.metrics[twin.Name]
	if !ok {
		c.bad("metric %s: its twin %s is no official metric", name, twin.Name)
		return
	}
	// A state's unit is "" with us and 1 there.
	if of.unit != m.Unit && !(of.unit == "1" && m.Unit == "") {
		c.bad("metric %s: in %q, its twin %s in %q", name, m.Unit, twin.Name, of.unit)
	}
	given := c.given(m.Attributes)
	for key, value := range twin.Attributes {
		if !slices.Contains(of.all, key) {
			c.bad("metric %s: its twin %s has no attribute %s", name, twin.Name, key)
		} else if !c.knows(key, value) {
			c.bad("metric %s: its twin's %s has no value %s", name, key, value)
		}
		given[key] = true
	}
	for _, key := range of.required {
		if !given[key] {
			c.bad("metric %s: its twin %s requires %s", name, twin.Name, key)
		}
	}
}

// given are the official attributes that a twin's series have from ours.
func (c *checker) given(refs []reference) map[string]bool {
	out := map[string]bool{}
	for _, r := range refs {
		if r.RefGroup != "" {
			maps.Copy(out, c.given(c.groups[r.RefGroup]))
			continue
		}
		out[r.Ref] = true
		for _, n := range []notes{r.Annotations.Gpumeter, c.ours[r.Ref].Annotations.Gpumeter} {
			for _, s := range n.Semconv {
				out[s.Key] = true
			}
		}
	}
	return out
}
