package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tool is a program whose name an environment variable has.
func tool(t *testing.T, variable string) string {
	t.Helper()
	name := os.Getenv(variable)
	if name == "" {
		t.Skipf("%s names no program; `make test` sets it", variable)
	}
	return name
}

// On a simulated cluster a real Prometheus takes all rules, each recording rule answers, alerts fire
// when devices have faults and reach Alertmanager with the pod that suffers, and pint finds nothing.
func TestLive(t *testing.T) {
	s := settings{
		gpumeter: gpumeter, prometheus: tool(t, "GPUMETER_PROMETHEUS"), alertmanager: tool(t, "GPUMETER_ALERTMANAGER"),
		rules: "../../rules/plain",
	}
	pint := tool(t, "GPUMETER_PINT")
	said := new(strings.Builder)
	d, err := start(t.Context(), s, said)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Prometheus' log:\n%s\nAlertmanager's:\n%s", d.prometheus.lastLines(), d.alertmanager.lastLines())
		}
		if err := d.stop(); err != nil {
			t.Error(err)
		}
	})
	d.introduce(said)
	for _, want := range []string{d.prometheus.url, d.alertmanager.url, d.exporters[3].url, d.faultFile("node-1"), "gpu-xid"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%s is not told of in\n%s", want, said)
		}
	}
	var rules []rule
	await(t, "each rule has been evaluated", func() string {
		rules = d.rules(t)
		for _, r := range rules {
			if r.Health == "unknown" {
				return r.Name
			}
		}
		return ""
	})
	d.checkRules(t, rules)
	d.checkAlerts(t)
	d.checkRecordings(t, rules) // some of which tell of faults only
	d.checkPint(t, pint, s.rules)
	d.checkRules(t, d.rules(t)) // by now with all there is to see
}

// checkRules wants the core to be seventeen alerts, and no rule to fail or to be warned of.
func (d *demo) checkRules(t *testing.T, rules []rule) {
	t.Helper()
	core := map[string]int{"gpumeter-infrastructure.yaml": 0, "gpumeter-fleet.yaml": 0, "gpumeter-inference.yaml": 0}
	for _, r := range rules {
		file := filepath.Base(r.file)
		if _, ok := core[file]; ok && r.Type == "alerting" {
			core[file]++
		}
		if r.Health != "ok" || r.LastError != "" {
			t.Errorf("%s of %s is %s: %s", r.Name, file, r.Health, r.LastError)
		}
		if said := d.query(t, r.Query); said.Warnings != nil || said.Infos != nil {
			t.Errorf("%s of %s: warnings %q, notes %q", r.Name, file, said.Warnings, said.Infos)
		}
	}
	if want := map[string]int{"gpumeter-infrastructure.yaml": 8, "gpumeter-fleet.yaml": 3, "gpumeter-inference.yaml": 6}; !maps.Equal(core, want) {
		t.Errorf("alerts %v, want %v", core, want)
	}
}

// checkRecordings wants each recording rule to have numbers.
func (d *demo) checkRecordings(t *testing.T, rules []rule) {
	t.Helper()
	var silent []string
	for _, r := range rules {
		if filepath.Base(r.file) == "gpumeter-recording.yaml" {
			silent = append(silent, r.Name)
		}
	}
	if len(silent) < 25 {
		t.Errorf("%d recording rules: %v", len(silent), silent)
	}
	await(t, "each recording rule answers", func() string {
		silent = slices.DeleteFunc(silent, func(name string) bool {
			all := d.query(t, fmt.Sprintf("{__name__=%q}", name)).Data.Result
			return slices.ContainsFunc(all, func(s sample) bool { return s.Value[1] != "NaN" })
		})
		return strings.Join(silent, ", ")
	})
}

// checkAlerts has a device fail and recover. Errors are looked back at for 15 minutes: those alerts
// go on for that long, which is not waited for.
func (d *demo) checkAlerts(t *testing.T) {
	t.Helper()
	var pod string
	await(t, "the first device has an owner", func() string {
		owners := d.query(t, `gpu_owner_info{instance="node-1",k8s_namespace_name="team-research"} and on (gpu_uuid) gpu_up{gpu_index="0"}`).Data.Result
		if len(owners) != 1 {
			return fmt.Sprint(owners)
		}
		pod = owners[0].Metric["k8s_pod_name"]
		return ""
	})
	ask := func(request string) {
		t.Helper()
		if _, err := d.ask(request); err != nil {
			t.Fatal(err)
		}
	}
	ask("node-1 gpu-xid gpu-ecc")
	suffers := func(l labels) bool {
		return l["instance"] == "node-1" && l["namespace"] == "team-research" && l["pod"] == pod
	}
	for _, alert := range []string{"GPUXIDErrors", "GPUECCUncorrectableErrors", "GPURecoveryNeeded"} {
		await(t, alert+" fires", func() string {
			if all := d.firing(t, alert); !slices.ContainsFunc(all, suffers) {
				return fmt.Sprintf("not for %s: %v", pod, all)
			}
			return ""
		})
		await(t, alert+" reaches Alertmanager", func() string {
			all := d.told(t, alert)
			if !slices.ContainsFunc(all, func(l labels) bool { return suffers(l) && l["cluster"] == "demo" }) {
				return fmt.Sprintf("not for %s: %v", pod, all)
			}
			return ""
		})
	}
	ask("node-1 none")
	await(t, "GPURecoveryNeeded ends", func() string {
		if all := append(d.firing(t, "GPURecoveryNeeded"), d.told(t, "GPURecoveryNeeded")...); slices.ContainsFunc(all, suffers) {
			return fmt.Sprint(all)
		}
		return ""
	})
}

// checkPint wants pint to have nothing against the rules, asking Prometheus too.
func (d *demo) checkPint(t *testing.T, pint, rules string) {
	t.Helper()
	text, err := os.ReadFile("pint.hcl")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "pint.hcl")
	text = fmt.Appendf(text, "\nprometheus \"demo\" {\n  uri     = %q\n  timeout = \"30s\"\n}\n", d.prometheus.url)
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	lint(t, pint, config, rules)
}

// Without a Prometheus pint has nothing against them either.
func TestPintOffline(t *testing.T) {
	for _, rules := range []string{"../../rules/plain", "../../rules/plain/compat"} {
		lint(t, tool(t, "GPUMETER_PINT"), "pint.hcl", rules, "--offline")
	}
}

func lint(t *testing.T, pint, config, rules string, more ...string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(rules, "*.yaml")) // as Prometheus is given them
	if err != nil || len(files) < 4 {
		t.Fatalf("rules %q, %v", files, err)
	}
	args := slices.Concat([]string{"--no-color", "--config", config}, more, []string{"lint", "--min-severity=warning", "--fail-on=warning"}, files)
	out, err := exec.CommandContext(t.Context(), pint, args...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "entries=") {
		t.Errorf("pint: %v\n%s", err, out)
	}
}
