// Package mixin renders the monitoring mixin as its users do.
package mixin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-jsonnet"
	"github.com/google/go-jsonnet/formatter"
	"github.com/google/go-jsonnet/linter"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

type groups struct {
	Groups []struct {
		Name     string `json:"name" yaml:"name"`
		Interval string `json:"interval" yaml:"interval"`
		Rules    []rule `json:"rules" yaml:"rules"`
	} `json:"groups" yaml:"groups"`
}

type rule struct {
	Record      string            `json:"record" yaml:"record"`
	Alert       string            `json:"alert" yaml:"alert"`
	Expr        string            `json:"expr" yaml:"expr"`
	For         string            `json:"for" yaml:"for"`
	Labels      map[string]string `json:"labels" yaml:"labels"`
	Annotations map[string]string `json:"annotations" yaml:"annotations"`
}

func evaluate(text string) (string, error) { return evaluateIn("../../mixin", text) }

// evaluateIn evaluates it with the mixin in dir.
func evaluateIn(dir, text string) (string, error) {
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{dir}})
	return vm.EvaluateAnonymousSnippet("test", text)
}

func render(t *testing.T, text string) (g groups) {
	t.Helper()
	out, err := evaluate(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), &g); err != nil {
		t.Fatal(err)
	}
	for i := range g.Groups { // how long lines are broken is the printer's
		for j := range g.Groups[i].Rules {
			normal(t, &g.Groups[i].Rules[j])
		}
	}
	return g
}

func normal(t *testing.T, r *rule) {
	t.Helper()
	e, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
	if err != nil {
		t.Fatalf("%s%s: %v\n%s", r.Record, r.Alert, err, r.Expr)
	}
	r.Expr = e.String()
}

func plain(t *testing.T, names ...string) (all groups) {
	t.Helper()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("../../rules/plain", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var g groups
		if err := yaml.Unmarshal(text, &g); err != nil {
			t.Fatal(err)
		}
		all.Groups = append(all.Groups, g.Groups...)
	}
	for i := range all.Groups {
		for j := range all.Groups[i].Rules {
			normal(t, &all.Groups[i].Rules[j])
		}
	}
	return all
}

// Who sets nothing gets what stands in rules/, all of it or one object alone.
func TestDefaults(t *testing.T) {
	want := plain(t, "gpumeter-infrastructure", "gpumeter-fleet", "gpumeter-inference")
	if diff := cmp.Diff(want, render(t, `(import 'mixin.libsonnet').prometheusAlerts`)); diff != "" {
		t.Errorf("not as in rules/plain (-want +got):\n%s", diff)
	}
	want = plain(t, "gpumeter-infrastructure", "gpumeter-fleet", "gpumeter-inference", "gpumeter-extra")
	if diff := cmp.Diff(want, render(t, `((import 'mixin.libsonnet') + { _config+:: { extraAlerts: true } }).prometheusAlerts`)); diff != "" {
		t.Errorf("with the extra alerts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(plain(t, "gpumeter-recording"), render(t, `(import 'mixin.libsonnet').prometheusRules`)); diff != "" {
		t.Errorf("recording rules not as in rules/plain (-want +got):\n%s", diff)
	}
	want = plain(t, "gpumeter-recording", "compat/gpumeter-compat-dcgm-4.8", "compat/gpumeter-compat-l9gpu")
	if diff := cmp.Diff(want, render(t, `((import 'mixin.libsonnet') + { _config+:: { compat: ['dcgm-4.8', 'l9gpu'] } }).prometheusRules`)); diff != "" {
		t.Errorf("with others' names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(plain(t, "gpumeter-fleet"), render(t, `(import 'mixin.libsonnet').gpumeterRules['gpumeter-fleet']`)); diff != "" {
		t.Errorf("one object alone (-want +got):\n%s", diff)
	}
}

// So do dashboards; and job, cluster, titles and tags are put into them.
func TestDashboards(t *testing.T) {
	render := func(config string) (all map[string]any) {
		t.Helper()
		out, err := evaluate(`((import 'mixin.libsonnet') + { _config+:: {` + config + `} }).grafanaDashboards`)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	want := map[string]any{}
	files, err := filepath.Glob("../../dashboards/*.json")
	if err != nil || files == nil {
		t.Fatalf("no dashboards: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var one any
		if err := json.Unmarshal(text, &one); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		want[filepath.Base(file)] = one
	}
	if diff := cmp.Diff(want, render(``)); diff != "" {
		t.Errorf("not as in dashboards/ (-want +got):\n%s", diff)
	}
	for name, board := range render(`gpumeterSelector: 'job=~"gpu.*",env="prod"', clusterLabel: 'zone', dashboardNamePrefix: 'ML / ', dashboardTags: ['ml'], showMultiCluster: false`) {
		var text strings.Builder
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		if err := e.Encode(board); err != nil {
			t.Fatal(err)
		}
		for _, left := range []string{"cluster=~", `job=\"gpumeter\"`, "gpumeterSelector", "jobSelector__", "clusterLabel", `["gpumeter"]`} {
			if strings.Contains(text.String(), left) {
				t.Errorf("%s still has %s", name, left)
			}
		}
		for _, put := range []string{`zone=~\"$cluster\"`, `"title":"ML / `, `"tags":["ml"]`, `"hide":2`} {
			if !strings.Contains(text.String(), put) {
				t.Errorf("%s has no %s", name, put)
			}
		}
	}
}

// What is set is put in everywhere.
func TestConfig(t *testing.T) {
	g := render(t, `((import 'mixin.libsonnet') + { _config+:: {
		gpumeterSelector: 'job=~"gpu.*",env="prod"', clusterLabel: 'zone', runbookURLPattern: 'https://wiki/%s',
		temperatureWarningFor: '1h', temperatureWarningMargin: 7, idleFor: '3h', fleetIdleFor: '2h', xidActions: 'reset',
		severities+: { GPUIdleWaste: 'info' },
	} }).prometheusAlerts`)
	seen := map[string]bool{}
	for _, group := range g.Groups {
		for _, r := range group.Rules {
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			for _, left := range []string{"cluster,", "labels.cluster", `job=\"gpumeter\"`, "%(", "__"} {
				if strings.Contains(string(text), left) {
					t.Errorf("%s%s still has %s: %s", r.Record, r.Alert, left, text)
				}
			}
			for want, in := range map[string]string{
				"< 7)[1h30s:30s]) >= 121":         r.Expr,
				`gpu_xid_action=~"reset"`:         r.Expr,
				`env="prod"`:                      r.Expr,
				"by (zone, instance, gpu_uuid)":   r.Expr,
				"gpu_idle_waste:value[3h30s:30s]": r.Expr,
				"idle for 2h":                     "idle for " + r.For,
				"GPUIdleWaste is info":            r.Alert + " is " + r.Labels["severity"],
				"https://wiki/gpuxiderrors":       r.Annotations["runbook_url"],
				"{{ with $labels.zone }} of cluster {{ . }}{{ end }} are idle": r.Annotations["summary"],
			} {
				seen[want] = seen[want] || strings.Contains(in, want)
			}
		}
	}
	for want, ok := range seen {
		if !ok {
			t.Errorf("nowhere: %s", want)
		}
	}
}

// What makes no sense is refused, and named.
func TestBadConfig(t *testing.T) {
	for config, want := range map[string]string{
		`temperatureWarningMargn: 5`:            `_config has no key temperatureWarningMargn`,
		`severities+: { GPUIdelWaste: 'info' }`: `_config.severities: no alert GPUIdelWaste`,
		`compat: ['dcgm']`:                      `_config.compat: no rules for dcgm`,
		`temperatureWarningFor: 'soon'`:         `soon is no duration`,
		`temperatureWarningFor: '500ms'`:        `500ms is no duration in whole seconds`,
	} {
		_, err := evaluate(`((import 'mixin.libsonnet') + { _config+:: { ` + config + ` } }).prometheusAlerts`)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
}

// kube-prometheus' addMixin makes one object of the alerts and the rules, and takes the dashboards.
func TestFieldsOfAMixin(t *testing.T) {
	out, err := evaluate(`local m = import 'mixin.libsonnet'; {
		groups: std.length(m.prometheusAlerts.groups + m.prometheusRules.groups), dashboards: std.length(m.grafanaDashboards),
		hidden: std.objectFields(m), } `)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Groups     int      `json:"groups"`
		Dashboards int      `json:"dashboards"`
		Hidden     []string `json:"hidden"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Groups == 0 || len(got.Hidden) > 0 {
		t.Errorf("%+v, %v: wants groups, and no field that is not hidden", got, err)
	}
}

// All jsonnet is formatted as the tools of others format it, and the linter has nothing to say.
func TestJsonnet(t *testing.T) {
	vm := installed(t)
	for _, pattern := range []string{"../../mixin/*.libsonnet", "../../mixin/*/*.libsonnet", "../../mixin/*/*.jsonnet"} {
		files, err := filepath.Glob(pattern)
		if err != nil || files == nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			options := formatter.DefaultOptions()
			if formatted, err := formatter.Format(file, string(text), options); err != nil {
				t.Error(err)
			} else if diff := cmp.Diff(formatted, string(text)); diff != "" {
				t.Errorf("%s is not formatted (-want +got):\n%s", file, diff)
			}
			var said strings.Builder
			if linter.LintSnippet(vm, &said, []linter.Snippet{{FileName: file, Code: string(text)}}) {
				t.Errorf("%s: %s", file, said.String())
			}
		}
	}
}
