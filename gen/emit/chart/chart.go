// Package chart emits what of the Helm chart follows from the spec: rules, dashboards, values and their schema.
package chart

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/emit/dashboard"
	"github.com/gpumeter/gpumeter/gen/emit/promrules"
	"github.com/gpumeter/gpumeter/gen/resolve"
)

// Emitter writes charts/gpumeter/files, the values, their schema and their page. The templates are written by hand.
var Emitter = emit.Emitter{
	Name: "chart",
	Doc:  "the Helm chart's rules, dashboards, values and their schema",
	Owns: []string{root + "files/*/*", root + "values.yaml", root + "values.schema.json", root + "README.md"},
	Run:  run,
}

const (
	root   = "charts/gpumeter/"
	source = "gen/emit/chart/values.yaml and spec/rules"
)

// written are the values by hand. A comment in braces behind one is more of its schema, and is not shown to users.
//
//go:embed values.yaml
var written string

func run(m *resolve.Model) ([]emit.File, error) {
	if len(m.Rules) == 0 {
		return nil, nil
	}
	all := values(m)
	schema, err := schemaOf(all)
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	readme, err := readmeOf(all)
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	shown := "# " + emit.Header(source) + "\n\n" + hidden.ReplaceAllString(all, "")
	files := []emit.File{{Path: root + "values.yaml", Data: []byte(shown)}, {Path: root + "values.schema.json", Data: schema}, {Path: root + "README.md", Data: readme}}
	for _, f := range m.Rules {
		data, err := rules(f)
		if err != nil {
			return nil, err
		}
		files = append(files, emit.File{Path: root + "files/rules/" + f.Object + ".yaml", Data: data})
	}
	boards, err := dashboard.Emitter.Run(m)
	if err != nil {
		return nil, err
	}
	for _, b := range boards {
		if name, ok := strings.CutPrefix(b.Path, "dashboards/"); ok && !strings.Contains(name, "/") {
			files = append(files, emit.File{Path: root + "files/dashboards/" + name, Data: b.Data})
		}
	}
	return files, nil
}

var hidden = regexp.MustCompile(`(?m) +# \{.*\}$`)

// length is a duration of whole seconds as Prometheus writes it.
const length = `^([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$`

// values puts the settings of the rules into those written by hand.
func values(m *resolve.Model) string {
	var settings, severities strings.Builder
	var compat []string
	for _, f := range m.Rules {
		for _, s := range f.Settings {
			text := s.Value()
			var more string
			switch {
			case s.Duration != "":
				more = fmt.Sprintf(" # {pattern: %q, minLength: 2}", length)
			case s.Number != nil: // helm --set takes one with a point for a text
				more = ` # {type: [number, string], pattern: "^-?[0-9]+([.][0-9]+)?(e-?[0-9]+)?$"}`
			default: // it stands between double quotes in expressions
				text, more = "'"+text+"'", ` # {pattern: "^[^\"\n]*$"}`
			}
			fmt.Fprintf(&settings, "\n    # %s\n    %s: %s%s", s.Brief, s.Name, text, more)
		}
		for _, g := range f.Groups {
			for _, a := range g.Alerts {
				fmt.Fprintf(&severities, "\n    %s: %s # {minLength: 1}", a.Alert.Alert, a.Severity)
			}
		}
		if f.Pack == "compat" {
			compat = append(compat, strings.TrimPrefix(f.Object, "compat-"))
		}
	}
	return strings.NewReplacer(" SETTINGS", settings.String(), " SEVERITIES", severities.String(), "COMPAT", strings.Join(compat, ", ")).Replace(written)
}

// rules are the groups of an object with places of Helm's templates where users set something, and the component
// by which the chart knows who wants them.
func rules(f *resolve.RuleFile) ([]byte, error) {
	put := promrules.Defaults()
	place := func(s *resolve.Setting) string { return "{{ ." + s.Name + " }}" }
	put.Setting, put.For = place, place
	put.Window = func(a *resolve.Alert) (window, step, points string) {
		return "{{ ." + a.For.Name + "Window }}", "{{ ." + a.For.Name + "Step }}", "{{ ." + a.For.Name + "Points }}"
	}
	groups, err := promrules.Groups(f, put)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Object, err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\ncomponent: %s\n", emit.Header(f.File), f.Pack)
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err = e.Encode(groups)
	return b.Bytes(), err
}
