package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

type spec struct {
	Groups []struct {
		Name     string
		Interval string
		Rules    []rule
	}
}

type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

// normal reads the spec of an object. How long lines are broken is the printer's.
func normal(t *testing.T, node yaml.Node) (s spec) {
	t.Helper()
	if err := node.Decode(&s); err != nil {
		t.Fatal(err)
	}
	for _, g := range s.Groups {
		for i, r := range g.Rules {
			e, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
			if err != nil {
				t.Fatalf("%s%s: %v\n%s", r.Record, r.Alert, err, r.Expr)
			}
			g.Rules[i].Expr = e.String()
		}
	}
	return s
}

// written are those of the repository.
func written(t *testing.T, pattern string) map[string]spec {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../rules/objects", pattern))
	if err != nil || files == nil {
		t.Fatalf("no rules: %v", err)
	}
	all := map[string]spec{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var o object
		if err := yaml.Unmarshal(text, &o); err != nil {
			t.Fatal(err)
		}
		all[o.Metadata.Name] = normal(t, o.Spec)
	}
	return all
}

func rendered(t *testing.T, values ...string) map[string]spec {
	t.Helper()
	all := map[string]spec{}
	for _, o := range of(render(t, append(values, "prometheusOperator=true")...), "PrometheusRule") {
		all[o.Metadata.Name] = normal(t, o.Spec)
	}
	return all
}

// Who sets nothing gets the rules of the bundle, word by word; and all of them who asks for all.
func TestRules(t *testing.T) {
	want := written(t, "*.yaml")
	extra := want["gpumeter-extra"]
	delete(want, "gpumeter-extra")
	if diff := cmp.Diff(want, rendered(t)); diff != "" {
		t.Errorf("not as in rules/objects (-want +got):\n%s", diff)
	}
	want["gpumeter-extra"] = extra
	for name, s := range written(t, "compat/*.yaml") {
		want[strings.ReplaceAll(name, "_", "-")] = s // names of objects have none
	}
	if diff := cmp.Diff(want, rendered(t, "rules.extra=true,rules.compat={dcgm-4.8,dcgm-4.9,l9gpu,l9gpu-gen_ai}")); diff != "" {
		t.Errorf("with all of them (-want +got):\n%s", diff)
	}
	if got := rendered(t, "rules.recording=false"); len(got) != 3 {
		t.Errorf("%d objects without the recording rules, want 3", len(got))
	}
	if got := rendered(t, "rules.enabled=false"); len(got) != 0 {
		t.Errorf("%d objects, want none", len(got))
	}
}

// Thresholds, durations and severities are put in, and the windows that follow from a duration.
func TestThresholds(t *testing.T) {
	all := map[string]rule{}
	for _, s := range rendered(t, "rules.config.idleFor=1h", "rules.config.idleBusyRatio=0.125", "rules.config.xidFor=90s", "rules.config.fleetIdleFor=2d",
		"rules.config.xidActions=reset|drain", "rules.config.eccUncorrectedFor=1d2h3m4s", "rules.severities.GPUIdleWaste=info") {
		for _, g := range s.Groups {
			for _, r := range g.Rules {
				all[r.Record+r.Alert] = r
			}
		}
	}
	for name, want := range map[string][]string{
		"GPUIdleWaste":                         {"< 0.125", "[1h30s:30s]", ">= 121"},
		"gpu:gpuxid_errors:held":               {"[2m:30s]", ">= 4", `gpu_xid_action=~"reset|drain"`},
		"gpu:gpuecc_uncorrectable_errors:held": {"[1d2h3m34s:30s]", ">= 3127"},
		"gpu:gpu_temperature_warning:held":     {"< 5", "[5m30s:30s]", ">= 11"},
	} {
		for _, text := range want {
			if !strings.Contains(all[name].Expr, text) {
				t.Errorf("%s: no %s in\n%s", name, text, all[name].Expr)
			}
		}
	}
	if got := all["GPUIdleWaste"].Labels["severity"]; got != "info" {
		t.Errorf("severity %s", got)
	}
	if got := all["FleetIdleGPUs"].For; got != "2d" {
		t.Errorf("for %s", got)
	}
}

// The dashboards are those of the bundle, byte by byte.
func TestDashboards(t *testing.T) {
	files, err := filepath.Glob("../../dashboards/*.json")
	if err != nil || files == nil {
		t.Fatalf("no dashboards: %v", err)
	}
	got := map[string]string{}
	for _, o := range of(render(t, "dashboards.namespace=grafana"), "ConfigMap") {
		if o.Metadata.Labels["grafana_dashboard"] != "1" {
			t.Errorf("%s has the labels %v", o.Metadata.Name, o.Metadata.Labels)
		}
		for name, text := range o.Data {
			got[name] = text + "\n"
		}
	}
	want := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want[filepath.Base(file)] = string(text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("not as in dashboards (-want +got):\n%s", diff)
	}
	if n := len(of(render(t, "dashboards.enabled=false"), "ConfigMap")); n != 0 {
		t.Errorf("%d, want none", n)
	}
}
