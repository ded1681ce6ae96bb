package definition

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// The spec as written, as far as it is told here. The generator has checked it; what it does not
// need to know is passed over.
type spec struct {
	groups     []group
	scopes     map[string]scope
	attributes map[string]attribute
}

type scope struct {
	Name       string
	Prefixes   []string
	Within     string
	Attributes []string
}

type attribute struct {
	Key        string
	Brief      string
	Note       string
	Type       string
	From       string
	Members    []member
	Deprecated *deprecated
}

type member struct {
	ID    string `json:"value"`
	Brief string `json:"brief"`
}

type group struct {
	Group   string
	Scopes  []string
	Brief   string
	Metrics []entry
}

type entry struct {
	Name       string
	Brief      string
	Note       string
	Stability  string
	Attributes []string
	Buckets    []float64
	Foreign    bool `yaml:"foreign_buckets"`
	Sources    sources
	Semconv    *twin
	Was        []elsewhere
	Deprecated *deprecated
}

type twin struct {
	Name       string            `json:"name"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

type elsewhere struct {
	System string `json:"system"`
	Name   string `json:"name"`
	Note   string `json:"note,omitempty"`
}

type deprecated struct {
	Since     string `json:"since"`
	RenamedTo string `json:"renamed_to,omitempty" yaml:"renamed_to"`
	Note      string `json:"note,omitempty"`
}

// sources keeps the order of the mapping: the first source that answers wins.
type sources []source

// UnmarshalYAML tells a source's scale and note from where it finds the metric.
func (s *sources) UnmarshalYAML(n *yaml.Node) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		src := source{Name: n.Content[i].Value}
		var said struct {
			Scale float64
			Note  string
		}
		if err := n.Content[i+1].Decode(&said); err != nil {
			return err
		}
		src.Scale, src.Note = said.Scale, said.Note
		keys := n.Content[i+1].Content
		var where []string
		for j := 0; j+1 < len(keys); j += 2 {
			key := keys[j].Value
			if key == "scale" || key == "note" {
				continue
			}
			var value any
			if err := keys[j+1].Decode(&value); err != nil {
				return err
			}
			if src.Where == nil {
				src.Where = map[string]any{}
			}
			src.Where[key] = value
			where = append(where, key+" "+plain(keys[j+1]))
		}
		src.where = strings.Join(where, ", ")
		*s = append(*s, src)
	}
	return nil
}

// plain writes a value as one would say it: a field's number may differ by driver version, and by
// member of an enum.
func plain(n *yaml.Node) string {
	var out []string
	switch n.Kind {
	case yaml.SequenceNode:
		for _, c := range n.Content {
			out = append(out, plain(c))
		}
		return strings.Join(out, " or ")
	case yaml.MappingNode:
		var by struct{ Driver, ID string }
		if n.Decode(&by) == nil && by.ID != "" {
			return join(by.ID, " for driver ", by.Driver)
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			out = append(out, n.Content[i].Value+" "+plain(n.Content[i+1]))
		}
		return strings.Join(out, ", ")
	}
	return n.Value
}

func load(root fs.FS) (*spec, error) {
	var (
		scopes     struct{ Scopes []scope }
		attributes struct{ Attributes []attribute }
	)
	if err := read(root, "spec/scopes.yaml", &scopes); err != nil {
		return nil, err
	}
	if err := read(root, "spec/attributes.yaml", &attributes); err != nil {
		return nil, err
	}
	out := &spec{scopes: map[string]scope{}, attributes: map[string]attribute{}}
	for _, s := range scopes.Scopes {
		out.scopes[s.Name] = s
	}
	for _, a := range attributes.Attributes {
		out.attributes[a.Key] = a
	}
	files, err := fs.Glob(root, "spec/metrics/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("the spec's metrics: %w", err)
	}
	for _, f := range files {
		var g group
		if err := read(root, f, &g); err != nil {
			return nil, err
		}
		out.groups = append(out.groups, g)
	}
	return out, nil
}

func read(root fs.FS, name string, into any) error {
	raw, err := fs.ReadFile(root, name)
	if err != nil {
		return fmt.Errorf("embedded files: %w", err)
	}
	if err := yaml.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// define brings what is written and what is exposed together.
func (s *spec) define(descs []*metric.Desc) ([]definition, error) {
	byName := map[string]entry{}
	for _, g := range s.groups {
		for _, e := range g.Metrics {
			for i, of := range g.Scopes {
				byName[s.name(e, g.Scopes[0], of, i)] = e
			}
		}
	}
	var out []definition
	for _, d := range descs {
		e, ok := byName[d.Name]
		if !ok {
			return nil, fmt.Errorf("the spec has no metric %s, which is exposed", d.Name)
		}
		out = append(out, s.definition(d, e))
	}
	return out, nil
}

// name is an entry's in the i-th scope of its group: written for the first, and with their own
// prefix in the others.
func (s *spec) name(e entry, first, of string, i int) string {
	if i == 0 {
		return e.Name
	}
	longest := ""
	for _, p := range s.scopes[first].Prefixes {
		if strings.HasPrefix(e.Name, p+".") && len(p) > len(longest) {
			longest = p
		}
	}
	return strings.Join(s.scopes[of].Prefixes, "") + strings.TrimPrefix(e.Name, longest)
}

func (s *spec) definition(d *metric.Desc, e entry) definition {
	out := definition{
		Prometheus: d.Prom, OpenTelemetry: d.Name, Type: d.Kind.Prom(), Instrument: d.Kind.String(), Unit: d.Unit,
		Brief: d.Help, Note: e.Note, Group: d.Group, Scope: d.Scope,
		Stability: cmp.Or(e.Stability, "development"), Enabled: "default", Deprecated: e.Deprecated,
		Labels: []label{}, Buckets: e.Buckets, Foreign: e.Foreign,
		Sources: append([]source{}, e.Sources...), Twin: e.Semconv, Elsewhere: append([]elsewhere{}, e.Was...),
	}
	if d.OptIn {
		out.Enabled = "opt-in"
	}
	of := s.scopes[d.Scope]
	for _, key := range slices.Concat(s.scopes[of.Within].Attributes, of.Attributes, e.Attributes) {
		a := s.attributes[key]
		out.Labels = append(out.Labels, label{
			// Keys have no character but these dots that a label may not have.
			Name: strings.ReplaceAll(key, ".", "_"), Attribute: key, Type: a.Type, Brief: a.Brief, Note: a.Note,
			From: a.From, Members: a.Members, Deprecated: a.Deprecated,
		})
	}
	return out
}
