// Package rules has promtool test the rules.
package rules

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

func promtool(t *testing.T, args ...string) string {
	t.Helper()
	tool := os.Getenv("GPUMETER_PROMTOOL")
	if tool == "" {
		t.Skip("GPUMETER_PROMTOOL does not name a promtool; `make test` sets it")
	}
	out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || files == nil {
		t.Fatalf("%s: no files, %v", pattern, err)
	}
	return files
}

// Prometheus takes every file, and its linter has nothing to say.
func TestRulesAreSound(t *testing.T) {
	promtool(t, append([]string{"check", "rules", "--lint=all", "--lint-fatal"}, append(glob(t, "../../rules/plain/*.yaml"), glob(t, "../../rules/plain/compat/*.yaml")...)...)...)
}

// Each alert fires when it should, and not before; is silent just below its threshold; and ends.
func TestRulesFire(t *testing.T) {
	for _, file := range glob(t, "*.yaml") {
		t.Run(file, func(t *testing.T) { promtool(t, "test", "rules", file) })
	}
}

// Each alert has a test that wants it to fire, and one that wants it silent.
func TestEveryAlertIsTested(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, file := range glob(t, "*.yaml") {
		var f struct {
			Tests []struct {
				Alerts []struct {
					Name string `yaml:"alertname"`
					Want []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			} `yaml:"tests"`
		}
		read(t, file, &f)
		for _, test := range f.Tests {
			for _, a := range test.Alerts {
				if len(a.Want) > 0 {
					fires[a.Name] = true
				} else {
					silent[a.Name] = true
				}
			}
		}
	}
	var all []string
	for _, file := range glob(t, "../../rules/plain/*.yaml") {
		var f struct {
			Groups []struct {
				Rules []struct {
					Alert string `yaml:"alert"`
				} `yaml:"rules"`
			} `yaml:"groups"`
		}
		read(t, file, &f)
		for _, g := range f.Groups {
			for _, r := range g.Rules {
				if r.Alert != "" {
					all = append(all, r.Alert)
				}
			}
		}
	}
	for _, name := range all {
		if !fires[name] || !silent[name] {
			t.Errorf("%s: tested to fire: %v, to be silent: %v", name, fires[name], silent[name])
		}
	}
	for name := range fires {
		if !slices.Contains(all, name) {
			t.Errorf("%s is tested, and is no alert", name)
		}
	}
}

// So has each recording rule one that asks for its number.
func TestEveryRecordingIsTested(t *testing.T) {
	var f struct {
		Tests []struct {
			Queries []struct {
				Expr string `yaml:"expr"`
			} `yaml:"promql_expr_test"`
		} `yaml:"tests"`
	}
	read(t, "recording.yaml", &f)
	asked := map[string]bool{}
	for _, test := range f.Tests {
		for _, q := range test.Queries {
			asked[q.Expr] = true
		}
	}
	var object struct {
		Groups []struct {
			Rules []struct {
				Record string `yaml:"record"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	read(t, "../../rules/plain/gpumeter-recording.yaml", &object)
	for _, g := range object.Groups {
		for _, r := range g.Rules {
			if !asked[r.Record] {
				t.Errorf("%s is not asked for", r.Record)
			}
		}
	}
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// The core is seventeen alerts in three objects, neither more nor fewer: people count on them.
func TestSeventeen(t *testing.T) {
	want := map[string]int{"gpumeter-infrastructure": 8, "gpumeter-fleet": 3, "gpumeter-inference": 6}
	got := map[string]int{}
	for _, file := range glob(t, "../../rules/objects/*.yaml") {
		var object struct {
			Kind     string `yaml:"kind"`
			Metadata struct {
				Name   string            `yaml:"name"`
				Labels map[string]string `yaml:"labels"`
			} `yaml:"metadata"`
			Spec struct {
				Groups []struct {
					Rules []struct {
						Alert string `yaml:"alert"`
					} `yaml:"rules"`
				} `yaml:"groups"`
			} `yaml:"spec"`
		}
		read(t, file, &object)
		if object.Kind != "PrometheusRule" {
			t.Errorf("%s is a %s", file, object.Kind)
		}
		if object.Metadata.Labels["app.kubernetes.io/component"] != "core" {
			continue
		}
		for _, g := range object.Spec.Groups {
			for _, r := range g.Rules {
				if r.Alert != "" {
					got[object.Metadata.Name]++
				}
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("alerts %v, want %v", got, want)
	}
}
