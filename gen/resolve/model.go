// Package resolve turns the written spec into the one model every emitter reads.
// Every outside name (Go, Prometheus, OpenTelemetry) is decided here and nowhere else, and every
// policy is checked here, so emitters only print.
package resolve

import (
	"slices"
	"strings"

	"github.com/gpumeter/gpumeter/gen/schema"
)

// Model is the whole spec, checked, with nothing left to look up.
type Model struct {
	Scopes     []*Scope
	Sources    []*Source
	Attributes []*Attribute
	Groups     []*Group
	Metrics    []*Metric   // of all scopes, in the order they are exposed
	Compats    []*Compat   // other exporters, in the order of their names
	XIDs       *XIDs       // nil: the spec has no such table
	Health     *Health     // the same
	Rules      []*RuleFile // recording rules first
	Vocabulary schema.Vocabulary
	Dashboards []*Dashboard

	labels map[string][]string // of what dashboards ask for
}

// Scope is a sort of thing metrics are about.
type Scope struct {
	schema.Scope
	GoName     string
	Within     *Scope   // the scope its things are parts of, nil when they are whole
	Parts      []*Scope // the scopes within this one
	Attributes []*Attribute
	Groups     []*Group
	Metrics    []*Metric
}

// GoParts names the field of the whole's Go struct that holds its things of this scope.
func (s *Scope) GoParts() string {
	if strings.HasSuffix(s.GoName, "s") {
		return s.GoName + "es"
	}
	return s.GoName + "s"
}

// AllAttributes are those every series of the scope carries: the whole's first, then its own.
func (s *Scope) AllAttributes() []*Attribute {
	if s.Within == nil {
		return s.Attributes
	}
	return append(slices.Clone(s.Within.AllAttributes()), s.Attributes...)
}

// Sort is the enum that tells what sort of part each thing of the scope is, or nil.
func (s *Scope) Sort() *Attribute {
	for _, a := range s.Attributes {
		if s.Within != nil && a.Closed() {
			return a
		}
	}
	return nil
}

// Source is something that reads metrics.
type Source struct {
	schema.Source
	Metrics []*Metric
}

// Attribute is one label.
type Attribute struct {
	schema.Attribute
	GoName string
	Label  string // Prometheus label name
}

// Closed says whether the spec knows all values of the attribute.
func (a *Attribute) Closed() bool { return a.Type == "enum" }

// IsAdditive says whether a sum over the attribute's values means something.
func (a *Attribute) IsAdditive() bool { return a.Additive == nil || *a.Additive }

// Group is one file of spec/metrics: one Go struct, whatever number of scopes it serves.
type Group struct {
	schema.Group
	GoName  string
	Scopes  []*Scope
	Metrics []*Metric // under the names of the first scope
}

// Metric is one exposed metric: an entry of a group in one of its scopes.
type Metric struct {
	schema.Metric              // Name is that of the scope
	Group         *Group       //
	Scope         *Scope       //
	GoField       string       // in the group's struct
	Prom          string       // Prometheus name, counters with _total
	PromUnit      string       // the unit's word in Prom, "" when there is none
	Attributes    []*Attribute // beyond the scope's
}

// Closed says whether all of the metric's attributes are closed, so that its series are known
// beforehand. Histograms are always kept by key.
func (m *Metric) Closed() bool {
	for _, a := range m.Attributes {
		if !a.Closed() {
			return false
		}
	}
	return m.Instrument != "histogram"
}

// OptIn says whether the metric is off unless asked for.
func (m *Metric) OptIn() bool { return m.Enabled == "opt-in" }

// SeriesNames are all names under which the metric meets a Prometheus: its own, those of the series
// a histogram has, and the family name OpenMetrics gives a counter, which lacks _total.
func (m *Metric) SeriesNames() []string {
	switch m.Instrument {
	case "histogram":
		return []string{m.Prom, m.Prom + "_bucket", m.Prom + "_sum", m.Prom + "_count"}
	case "counter":
		return []string{m.Prom, strings.TrimSuffix(m.Prom, "_total")}
	}
	return []string{m.Prom}
}

// Everywhere is the entry under the name it bears in each of its group's scopes, m among them.
func (m *Metric) Everywhere() []*Metric {
	var out []*Metric
	for _, s := range m.Group.Scopes {
		for _, x := range s.Metrics {
			if x.Group == m.Group && x.GoField == m.GoField {
				out = append(out, x)
			}
		}
	}
	return out
}

// Labels are the label names of a series, the scope's first.
func (m *Metric) Labels() []string {
	var names []string
	for _, a := range m.Scope.AllAttributes() {
		names = append(names, a.Label)
	}
	for _, a := range m.Attributes {
		names = append(names, a.Label)
	}
	return names
}

// MemberName is the Go constant of an enum's i-th member.
func (a *Attribute) MemberName(i int) string { return a.GoName + camel(a.Members[i].ID) }

// NameOfMember is the Go constant of the member with that id, empty when there is none.
func (a *Attribute) NameOfMember(id string) string {
	i := slices.Index(a.MemberIDs(), id)
	if i < 0 {
		return ""
	}
	return a.MemberName(i)
}

// MemberIDs are the values of an enum, in their order.
func (a *Attribute) MemberIDs() []string {
	ids := make([]string, len(a.Members))
	for i, m := range a.Members {
		ids[i] = m.ID
	}
	return ids
}

// LabelsOf are the labels that the series of a metric or of a recording rule can have, of those that
// dashboards ask for.
func (m *Model) LabelsOf(name string) []string { return m.labels[name] }
