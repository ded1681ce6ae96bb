package mixin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// installed finds the mixin and kube-prometheus as they lie after jb install. GPUMETER_KUBE_PROMETHEUS may
// name a checkout's folder jsonnet: then its own addMixin is used.
func installed(t *testing.T) *jsonnet.VM {
	t.Helper()
	vendor := t.TempDir()
	link := func(from, to string) {
		t.Helper()
		to = filepath.Join(vendor, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		from, err := filepath.Abs(from)
		if err == nil {
			err = os.Symlink(from, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	link("../../mixin", "github.com/gpumeter/gpumeter/mixin")
	if checkout := os.Getenv("GPUMETER_KUBE_PROMETHEUS"); checkout != "" {
		link(filepath.Join(checkout, "kube-prometheus/lib/mixin.libsonnet"), "kube-prometheus/lib/mixin.libsonnet")
	}
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{"testdata", vendor}}) // the last is looked through first
	return vm
}

// The example for kube-prometheus makes one object that its operator takes, with what the example sets.
func TestKubePrometheus(t *testing.T) {
	vm := installed(t)
	out, err := vm.EvaluateFile("../../mixin/examples/kube-prometheus.jsonnet")
	if err != nil {
		t.Fatal(err)
	}
	var files map[string]struct {
		Kind string          `json:"kind"`
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal([]byte(out), &files); err != nil {
		t.Fatal(err)
	}
	object := files["gpumeter-prometheusRule.json"]
	if object.Kind != "PrometheusRule" {
		t.Fatalf("kind %q", object.Kind)
	}
	all, faults := rulefmt.Parse(object.Spec, false, model.LegacyValidation, parser.NewParser(parser.Options{}), nil)
	for _, fault := range faults {
		t.Error(fault)
	}
	var alerts, records int
	severity := map[string]string{}
	for _, g := range all.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				records++
				continue
			}
			alerts++
			severity[r.Alert] = r.Labels["severity"]
		}
	}
	if alerts != 17+9 || records == 0 || !strings.Contains(string(object.Spec), "[1h30s:30s]") || severity["GPUPCIeReplays"] != "info" {
		t.Errorf("%d alerts, %d records, GPUPCIeReplays is %s:\n%s", alerts, records, severity["GPUPCIeReplays"], object.Spec)
	}
	if names := slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, g := range all.Groups {
			if !yield(g.Name) {
				return
			}
		}
	})); len(names) != len(all.Groups) {
		t.Errorf("%d groups have %d names", len(all.Groups), len(names))
	}
}
