package schema

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// RuleFile is one file of spec/rules: one PrometheusRule object.
type RuleFile struct {
	Pos    `yaml:"-"`
	Object string       `yaml:"object" need:"true" doc:"Name of the object, the same as the file's."`
	Pack   string       `yaml:"pack" need:"true" enum:"core,recording,extra,compat" doc:"core: the alerts everybody gets. recording: what dashboards and alerts share. extra and compat: only for those who ask."`
	Brief  string       `yaml:"brief" need:"true" doc:"One sentence: what the object is for."`
	Note   string       `yaml:"note" doc:"More than one sentence, where needed."`
	Config Map[Setting] `yaml:"config" doc:"What its users may set, by a name in camelCase; an expression says config:name where a number stands."`
	Groups []RuleGroup  `yaml:"groups" need:"true" doc:"Its groups, whose rules Prometheus evaluates together and in this order."`
}

// Setting is a threshold or a duration with its default: exactly one of number, duration and text.
type Setting struct {
	Number   *float64 `yaml:"number" doc:"A number, in the unit of what it is compared with."`
	Duration string   `yaml:"duration" doc:"A time as Prometheus writes it: 5m."`
	Text     string   `yaml:"text" doc:"What a label is compared with: \"=~\" takes it as an expression."`
	Brief    string   `yaml:"brief" need:"true" doc:"One sentence: what it decides."`
}

// RuleGroup is one group of rules.
type RuleGroup struct {
	Pos    `yaml:"-"`
	Name   string      `yaml:"name" need:"true" doc:"Lower-case words joined by dashes; Prometheus shows it."`
	Every  string      `yaml:"every" doc:"How often it is evaluated. Default as the Prometheus is configured."`
	Rules  []Recording `yaml:"rules" doc:"Recording rules; they come before the alerts."`
	Alerts []Alert     `yaml:"alerts" doc:"Alerts."`
}

// Recording is a recording rule.
type Recording struct {
	Pos    `yaml:"-"`
	Record string `yaml:"record" need:"true" doc:"level:metric:operation."`
	Brief  string `yaml:"brief" need:"true" doc:"One sentence: what the number is."`
	Note   string `yaml:"note" doc:"More than one sentence, where needed."`
	Expr   string `yaml:"expr" need:"true" doc:"PromQL. Selectors of job and cluster are put in."`
}

// Alert is an alert.
type Alert struct {
	Pos         `yaml:"-"`
	Alert       string   `yaml:"alert" need:"true" doc:"Its name, CamelCase."`
	Brief       string   `yaml:"brief" need:"true" doc:"One sentence: when it fires."`
	About       string   `yaml:"about" need:"true" enum:"device,workload,engine,fleet,exporter" doc:"device: the expression is aggregated by (cluster, instance, gpu_uuid); the time is held over that, and the owner joined last."`
	Expr        string   `yaml:"expr" need:"true" doc:"PromQL, true while there is something to say. Selectors of job and cluster are put in."`
	While       string   `yaml:"while" doc:"PromQL that must be true too when the time is over, but need not have been all the time."`
	Victims     string   `yaml:"victims" doc:"Of an alert about a device: PromQL of what its workloads suffered. Where it is above 0 they are named, and not who holds the device by now."`
	Over        []string `yaml:"over" doc:"Labels by which the time of an alert about a workload or an engine is held, of those its expression has: not the pod, else one that comes and goes resets it. The expression compares with a number."`
	For         string   `yaml:"for" need:"true" doc:"Name of the setting that says for how long it must be true."`
	Severity    string   `yaml:"severity" need:"true" enum:"critical,warning,info" doc:"critical wakes somebody up."`
	Summary     string   `yaml:"summary" need:"true" doc:"One line: what is wrong with what. Labels as {{ $labels.gpu_uuid }}."`
	Description string   `yaml:"description" need:"true" doc:"What is wrong, where, whose work it hits, and how bad it is."`
	Runbook     string   `yaml:"runbook" need:"true" doc:"Markdown: what it means, what to look at, what to do."`
}

// loadRules reads what spec/rules holds; it may be missing.
func loadRules(root fs.FS, faults *Faults) []RuleFile {
	var out []RuleFile
	entries, err := fs.ReadDir(root, "rules")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		faults.Add(Pos{File: "spec/rules"}, "cannot be read: %v", err)
	}
	for _, entry := range entries {
		name := path.Join("rules", entry.Name())
		word, ok := strings.CutSuffix(entry.Name(), ".yaml")
		if !ok || entry.IsDir() {
			faults.Add(Pos{File: path.Join("spec", name)}, "only files named <object>.yaml belong here")
			continue
		}
		var f RuleFile
		if !read(root, name, &f, faults) {
			continue
		}
		if f.Object != word {
			faults.Add(f.Pos, "object %q stands in %s.yaml; they must agree", f.Object, word)
		}
		out = append(out, f)
	}
	return out
}
