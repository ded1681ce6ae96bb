// Package mixin emits what the monitoring mixin is made of: the rules and their settings as jsonnet.
package mixin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/promql"
	"github.com/gpumeter/gpumeter/gen/resolve"
)

// Emitter writes mixin/generated.
var Emitter = emit.Emitter{
	Name: "mixin",
	Doc:  "the rules and their settings as jsonnet, for the monitoring mixin",
	Owns: []string{"mixin/generated/*.libsonnet"},
	Run:  run,
}

// What stands in an expression until it is printed: jsonnet puts the user's in at their places.
const (
	selector = "gpumeterSelector" // a matcher of that label
	cluster  = "clusterLabel__"
)

func run(m *resolve.Model) ([]emit.File, error) {
	if len(m.Rules) == 0 {
		return nil, nil
	}
	files := []emit.File{config(m)}
	for _, f := range m.Rules {
		var b bytes.Buffer
		fmt.Fprintf(&b, "// %s\n", emit.Header(f.File))
		b.WriteString("local held = import '../lib/held.libsonnet';\n\n// The groups of the object, with a configuration put in.\nfunction(config) [\n")
		for _, g := range f.Groups {
			if err := group(&b, f, g); err != nil {
				return nil, fmt.Errorf("group %s: %w", g.Name, err)
			}
		}
		b.WriteString("]\n")
		files = append(files, emit.File{Path: "mixin/generated/" + f.Object + ".libsonnet", Data: b.Bytes()})
	}
	return files, nil
}

// config lists all settings with their defaults, and which objects there are.
func config(m *resolve.Model) emit.File {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n{\n", emit.Header("spec/rules"))
	for _, f := range m.Rules {
		for _, s := range f.Settings {
			fmt.Fprintf(&b, "  // %s\n  %s: %s,\n", s.Brief, s.Name, quote(s.Value(), s.Number == nil))
		}
	}
	b.WriteString("\n  // How bad each alert is.\n  severities: {\n")
	for _, f := range m.Rules {
		for _, g := range f.Groups {
			for _, a := range g.Alerts {
				fmt.Fprintf(&b, "    %s: %s,\n", a.Alert.Alert, quote(a.Severity, true))
			}
		}
	}
	b.WriteString("  },\n}\n")
	return emit.File{Path: "mixin/generated/config.libsonnet", Data: b.Bytes()}
}

func group(b *bytes.Buffer, f *resolve.RuleFile, g *resolve.RuleGroup) error {
	rules, err := g.Rules(f, resolve.Put{
		Setting: func(s *resolve.Setting) string { return "%(" + s.Name + ")s" },
		For:     func(s *resolve.Setting) string { return "%(" + s.Name + ")s" },
		Window: func(a *resolve.Alert) (window, step, points string) {
			return "%(" + a.For.Name + "Window)s", "%(" + a.For.Name + "Step)s", "%(" + a.For.Name + "Points)s"
		},
		Cluster:  cluster,
		Matchers: []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, selector, "")},
		Severity: func(a *resolve.Alert) string { return a.Alert.Alert },
		Runbook:  func(a *resolve.Alert) string { return strings.ToLower(a.Alert.Alert) },
		Print:    (*promql.Expr).Pretty,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "  {\n    name: %s,\n", quote("gpumeter-"+g.Name, true))
	if g.Every != "" {
		fmt.Fprintf(b, "    interval: %s,\n", quote(g.Every, true))
	}
	b.WriteString("    rules: [\n")
	for _, r := range rules {
		b.WriteString("      {\n")
		if r.Record != "" {
			fmt.Fprintf(b, "        record: %s,\n        expr: %s %% held(config),\n", quote(r.Record, true), expression(r.Expr))
			static(b, r.Labels)
		} else {
			alert(b, r)
		}
		b.WriteString("      },\n")
	}
	b.WriteString("    ],\n  },\n")
	return nil
}

// static are the labels a recording rule gives its series.
func static(b *bytes.Buffer, all []resolve.Text) {
	if all == nil {
		return
	}
	b.WriteString("        labels: {\n")
	for _, l := range all {
		fmt.Fprintf(b, "          %s: %s,\n", l.Name, quote(l.Value, true))
	}
	b.WriteString("        },\n")
}

func alert(b *bytes.Buffer, r resolve.Rule) {
	fmt.Fprintf(b, "        alert: %s,\n        expr: %s %% held(config),\n", quote(r.Alert, true), expression(r.Expr))
	if r.For != "" {
		fmt.Fprintf(b, "        'for': %s %% config,\n", quote(r.For, true))
	}
	b.WriteString("        labels: {\n")
	for _, l := range r.Labels {
		if l.Name == "severity" {
			fmt.Fprintf(b, "          severity: config.severities.%s,\n", r.Alert)
		} else {
			fmt.Fprintf(b, "          %s: %s,\n", l.Name, quote(l.Value, true))
		}
	}
	b.WriteString("        },\n        annotations: {\n")
	for _, a := range r.Annotations {
		switch a.Name {
		case "runbook_url":
			fmt.Fprintf(b, "          runbook_url: config.runbookURLPattern %% %s,\n", quote(a.Value, true))
		default:
			text := strings.ReplaceAll(escape(a.Value), "$labels.cluster", "$labels.%(clusterLabel)s")
			fmt.Fprintf(b, "          %s: %s %% config,\n", a.Name, quote(text, true))
		}
	}
	b.WriteString("        },\n")
}

// expression is a string of jsonnet with places for what the user sets.
func expression(text string) string {
	places := strings.NewReplacer(selector+`=""`, "%(gpumeterSelector)s", cluster, "%(clusterLabel)s")
	return quote(places.Replace(text), true)
}

// escape keeps what is a format to jsonnet and not to us.
func escape(text string) string { return strings.ReplaceAll(text, "%", "%%") }

// quote writes a value as jsonnet: text between single quotes where it has none, with the escapes of JSON.
func quote(text string, isText bool) string {
	if !isText {
		return text
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(text) //nolint:errcheck // a text can always be encoded
	if strings.Contains(text, "'") && !strings.Contains(text, `"`) {
		return strings.TrimSpace(b.String()) // as jsonnetfmt has it
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
	return "'" + strings.ReplaceAll(strings.ReplaceAll(inner, `\"`, `"`), "'", `\'`) + "'"
}
