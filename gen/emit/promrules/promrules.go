// Package promrules emits the rules: PrometheusRule objects, and the same as plain files.
package promrules

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"go.yaml.in/yaml/v3"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/promql"
	"github.com/gpumeter/gpumeter/gen/resolve"
)

// Emitter writes rules/objects, and the same into rules/plain.
var Emitter = emit.Emitter{
	Name: "promrules",
	Doc:  "alerts and recording rules, for Prometheus' operator and for a Prometheus itself",
	Owns: []string{"rules/*/*.yaml", "rules/*/compat/*.yaml"},
	Run:  run,
}

// Runbooks is where the runbooks can be read.
const Runbooks = "https://github.com/gpumeter/gpumeter/blob/main/spec/reference/rules.md#"

// Defaults puts in what everybody gets who sets nothing.
func Defaults() resolve.Put {
	return resolve.Put{
		Setting:  (*resolve.Setting).Value,
		For:      (*resolve.Setting).Value,
		Window:   func(a *resolve.Alert) (window, step, points string) { return resolve.Window(a.Held()) },
		Matchers: []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "job", "gpumeter")},
		Severity: func(a *resolve.Alert) string { return a.Severity },
		Runbook:  func(a *resolve.Alert) string { return Runbooks + strings.ToLower(a.Alert.Alert) },
		Print:    (*promql.Expr).Pretty,
	}
}

// object is a PrometheusRule.
type object struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       Rules    `yaml:"spec"`
}

type metadata struct {
	Name   string            `yaml:"name"`
	Labels map[string]string `yaml:"labels"`
}

// Rules are the groups of a file as Prometheus reads them.
type Rules struct {
	Groups []group `yaml:"groups"`
}

type group struct {
	Name     string `yaml:"name"`
	Interval string `yaml:"interval,omitempty"`
	Rules    []rule `yaml:"rules"`
}

type rule struct {
	Record      string    `yaml:"record,omitempty"`
	Alert       string    `yaml:"alert,omitempty"`
	Expr        string    `yaml:"expr"`
	For         string    `yaml:"for,omitempty"`
	Labels      yaml.Node `yaml:"labels,omitempty"`
	Annotations yaml.Node `yaml:"annotations,omitempty"`
}

func run(m *resolve.Model) ([]emit.File, error) {
	objects, err := each(m, "rules/objects/", func(f *resolve.RuleFile, g Rules) any {
		return object{
			APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule",
			Metadata: metadata{Name: name(f), Labels: map[string]string{"app.kubernetes.io/name": "gpumeter", "app.kubernetes.io/component": f.Pack}},
			Spec:     g,
		}
	})
	if err != nil {
		return nil, err
	}
	plain, err := each(m, "rules/plain/", func(_ *resolve.RuleFile, g Rules) any { return g })
	return append(objects, plain...), err
}

func name(f *resolve.RuleFile) string { return "gpumeter-" + f.Object }

// below is a folder of its own for rules that give other exporters' names: nobody gets them who applies
// the rest.
func below(f *resolve.RuleFile) string {
	if f.Pack == "compat" {
		return "compat/"
	}
	return ""
}

func each(m *resolve.Model, dir string, shape func(*resolve.RuleFile, Rules) any) ([]emit.File, error) {
	var files []emit.File
	for _, f := range m.Rules {
		g, err := Groups(f, Defaults())
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		fmt.Fprintf(&b, "# %s\n", emit.Header(f.File))
		if f.Left != nil {
			fmt.Fprintf(&b, "#\n# %s %s\n# Names left out:\n", f.Brief, f.Note)
		}
		for _, left := range f.Left {
			fmt.Fprintf(&b, "#   %s\n", left)
		}
		e := yaml.NewEncoder(&b)
		e.SetIndent(2)
		if err := e.Encode(shape(f, g)); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Object, err)
		}
		files = append(files, emit.File{Path: dir + below(f) + name(f) + ".yaml", Data: b.Bytes()})
	}
	return files, nil
}

// Groups makes them, with what is put in.
func Groups(f *resolve.RuleFile, put resolve.Put) (Rules, error) {
	var out Rules
	for _, g := range f.Groups {
		rules, err := g.Rules(f, put)
		if err != nil {
			return out, fmt.Errorf("group %s: %w", g.Name, err)
		}
		one := group{Name: "gpumeter-" + g.Name, Interval: g.Every}
		for _, r := range rules {
			one.Rules = append(one.Rules, rule{Record: r.Record, Alert: r.Alert, Expr: r.Expr, For: r.For, Labels: texts(r.Labels), Annotations: texts(r.Annotations)})
		}
		out.Groups = append(out.Groups, one)
	}
	return out, nil
}

// texts keeps the order.
func texts(all []resolve.Text) yaml.Node {
	n := yaml.Node{Kind: yaml.MappingNode}
	for _, t := range all {
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: t.Name}, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: t.Value})
	}
	if all == nil {
		return yaml.Node{}
	}
	return n
}
