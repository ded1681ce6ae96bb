package resolve

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/gpumeter/gpumeter/gen/promql"
	"github.com/gpumeter/gpumeter/gen/schema"
	"github.com/gpumeter/gpumeter/spell"
)

// RuleFile is one PrometheusRule object.
type RuleFile struct {
	schema.RuleFile
	Settings []*Setting
	Groups   []*RuleGroup
	Left     []string // names of another exporter for which it has no rule, and why
}

// Setting is what users of a rule file may set.
type Setting struct {
	schema.Setting
	schema.Pos
	Name string
	used bool
}

// Value is the default, as it stands in an expression or as the duration of an alert.
func (s *Setting) Value() string {
	switch {
	case s.Number != nil:
		return strconv.FormatFloat(*s.Number, 'f', -1, 64)
	case s.Duration != "":
		return s.Duration
	}
	return s.Text
}

// RuleGroup is a group of rules.
type RuleGroup struct {
	schema.RuleGroup
	Recordings []*Recording
	Alerts     []*Alert
}

// Recording is a recording rule.
type Recording struct {
	schema.Recording
	Expr   *promql.Expr
	Labels promql.Labels // of its series
	Static []Text        // labels its series bear besides
}

// Alert is an alert.
type Alert struct {
	schema.Alert
	Expr  *promql.Expr // as it is written: not joined with the owner
	While *promql.Expr // nil: nothing else must be true

	Victims *promql.Expr  // nil: the owner is named
	Labels  promql.Labels // of the alert's series, those of the owner among them
	For     *Setting
}

// Device says that the alert is about a device: its time is held over the device, and the owner is joined
// last.
func (a *Alert) Device() bool { return a.About == "device" }

// podLabels are those of what may come and go while the work that an alert is about goes on.
var podLabels = []string{"k8s_pod_name", "k8s_container_name", "slurm_job_id"}

// checkOver checks by what the time of an alert about a workload or an engine is held.
func (a *Alert) checkOver(bad func(string, ...any)) {
	switch about := a.About == "workload" || a.About == "engine"; {
	case !about && len(a.Over) > 0:
		bad("over belongs to an alert about a workload or an engine")
	case !about || a.Expr == nil || a.Labels == nil:
		return
	case len(a.Over) == 0:
		bad("wants over: the labels by which its time is held")
		return
	}
	for _, name := range a.Over {
		if !a.Labels[name] {
			bad("over: the expression has no label %s%s", name, spell.Suggest(name, a.Labels.Sorted()))
		}
		if slices.Contains(podLabels, name) {
			bad("over: %s comes and goes, which would reset its time", name)
		}
	}
	if _, _, _, ok := a.Expr.Compared(); len(a.Over) > 0 && !ok {
		bad("over: the expression is no comparison with a number, such as x > config:y")
	}
}

// Setting finds a setting of the file, nil when there is none.
func (f *RuleFile) Setting(name string) *Setting {
	for _, s := range f.Settings {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// DeviceLabels are those by which an alert about a device is aggregated, and OwnerLabels those of who
// holds it, which are joined.
func DeviceLabels() []string { return []string{"cluster", "instance", "gpu_uuid"} }

// OwnerLabels are joined to an alert about a device.
func OwnerLabels() []string {
	return []string{
		"k8s_namespace_name", "k8s_pod_name", "k8s_container_name", "k8s_workload_kind", "k8s_workload_name",
		"slurm_job_id", "slurm_user", "process_unit",
	}
}

// targetLabels are what Prometheus itself puts on series.
var targetLabels = []string{"cluster", "instance", "job", "node"}

var (
	recordName  = regexp.MustCompile(`^[a-z_]+:[a-z][a-z0-9_]*:[a-z][a-z0-9_]*$`)
	alertName   = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	settingName = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)
	labelInText = regexp.MustCompile(`\$labels\.([A-Za-z_][A-Za-z0-9_]*)`)
)

// ordered puts the files with recording rules first: the others may use them.
func ordered(files []schema.RuleFile) []schema.RuleFile {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b schema.RuleFile) int {
		last := func(f schema.RuleFile) int {
			return slices.Index([]string{"recording", "core", "extra", "compat"}, f.Pack)
		}
		return last(a) - last(b)
	})
	return files
}

// rules checks one file of rules. Recording rules of files before it may be used.
func (r *resolver) rules(f schema.RuleFile) {
	out := &RuleFile{RuleFile: f}
	checkBrief(f.Pos, "object "+f.Object, f.Brief, &r.faults)
	for _, e := range f.Config {
		out.Settings = append(out.Settings, r.setting(e))
	}
	for _, g := range f.Groups {
		group := &RuleGroup{RuleGroup: g}
		if !groupName.MatchString(g.Name) {
			r.faults.Add(g.Pos, "group %q: a name is lower-case words joined by dashes", g.Name)
		}
		if g.Every != "" && !isDuration(g.Every) {
			r.faults.Add(g.Pos, "group %s: every %q is no time such as 1m", g.Name, g.Every)
		}
		for _, rule := range g.Rules {
			group.Recordings = append(group.Recordings, r.recording(out, rule))
		}
		for _, alert := range g.Alerts {
			group.Alerts = append(group.Alerts, r.alert(out, alert))
		}
		out.Groups = append(out.Groups, group)
	}
	for _, s := range out.Settings {
		if !s.used {
			r.faults.Add(s.Pos, "setting %s: nothing uses it", s.Name)
		}
	}
	r.model.Rules = append(r.model.Rules, out)
}

func (r *resolver) setting(e schema.Named[schema.Setting]) *Setting {
	s := &Setting{Setting: e.Value, Pos: e.Pos, Name: e.Key}
	bad := func(format string, args ...any) {
		r.faults.Add(e.Pos, "setting "+e.Key+": "+format, args...)
	}
	if !settingName.MatchString(e.Key) {
		bad("a name is one word in camelCase")
	}
	said := 0
	for _, is := range []bool{s.Number != nil, s.Duration != "", s.Text != ""} {
		if is {
			said++
		}
	}
	if said != 1 {
		bad("wants exactly one of number, duration and text: its default")
	}
	if s.Duration != "" && !isDuration(s.Duration) {
		bad("duration %q is no time such as 5m", s.Duration)
	}
	checkBrief(e.Pos, "setting "+e.Key, s.Brief, &r.faults)
	return s
}

func isDuration(text string) bool {
	_, err := model.ParseDuration(text)
	return err == nil
}

// Held is for how long an alert must be true.
func (a *Alert) Held() time.Duration {
	d, _ := model.ParseDuration(a.For.Duration)
	return time.Duration(d)
}

func (r *resolver) recording(f *RuleFile, rule schema.Recording) *Recording {
	out := &Recording{Recording: rule}
	if !recordName.MatchString(rule.Record) {
		r.faults.Add(rule.Pos, "rule %s: a name is level:metric:operation", rule.Record)
	}
	checkBrief(rule.Pos, "rule "+rule.Record, rule.Brief, &r.faults)
	out.Expr, out.Labels = r.expression(f, rule.Pos, "rule "+rule.Record, rule.Expr)
	if at, twice := r.records[rule.Record]; twice {
		r.faults.Add(rule.Pos, "rule %s: is there twice, first at %s", rule.Record, at.Pos)
	}
	r.records[rule.Record] = out
	return out
}

func (r *resolver) alert(f *RuleFile, alert schema.Alert) *Alert {
	out := &Alert{Alert: alert}
	bad := func(format string, args ...any) {
		r.faults.Add(alert.Pos, "alert "+alert.Alert+": "+format, args...)
	}
	if !alertName.MatchString(alert.Alert) {
		bad("a name is words in CamelCase")
	}
	if at, twice := r.alerts[alert.Alert]; twice {
		bad("is there twice, first at %s", at)
	}
	r.alerts[alert.Alert] = alert.Pos
	checkBrief(alert.Pos, "alert "+alert.Alert, alert.Brief, &r.faults)
	for key, text := range map[string]string{"summary": alert.Summary, "description": alert.Description, "runbook": alert.Runbook} {
		if strings.TrimSpace(text) == "" {
			bad("empty %s", key)
		}
	}
	if out.For = f.Setting(alert.For); out.For == nil || out.For.Duration == "" {
		bad("for: no duration %q under config%s", alert.For, spell.Suggest(alert.For, settingNames(f)))
		out.For = &Setting{Setting: schema.Setting{Duration: "0s"}}
	}
	out.For.used = true
	out.Expr, out.Labels = r.expression(f, alert.Pos, "alert "+alert.Alert, alert.Expr)
	if alert.Victims != "" && !out.Device() {
		bad("victims belong to an alert about a device")
	} else if alert.Victims != "" {
		var labels promql.Labels
		out.Victims, labels = r.expression(f, alert.Pos, "alert "+alert.Alert+": victims", alert.Victims)
		if out.Victims != nil && labels != nil && !labels.Has(append(DeviceLabels(), OwnerLabels()...)...) {
			bad("victims: the expression lacks labels of devices or of workloads")
		}
	}
	if alert.While != "" && !out.Device() {
		bad("while belongs to an alert about a device; write it into the expression")
	} else if alert.While != "" {
		out.While, _ = r.expression(f, alert.Pos, "alert "+alert.Alert+": while", alert.While)
	}
	if out.Expr != nil && out.Labels != nil && out.Device() {
		if got := out.Labels.Sorted(); !slices.Equal(got, slices.Sorted(slices.Values(DeviceLabels()))) {
			bad("an alert about a device is aggregated by (%s) and nothing else, not (%s): else a pod that comes or goes resets its time", strings.Join(DeviceLabels(), ", "), strings.Join(got, ", "))
		}
		for _, l := range OwnerLabels() {
			out.Labels[l] = true
		}
	}
	out.checkOver(bad)
	for key, text := range map[string]string{"summary": alert.Summary, "description": alert.Description} {
		for _, m := range labelInText.FindAllStringSubmatch(text, -1) {
			if out.Labels != nil && !out.Labels[m[1]] {
				bad("%s: the expression has no label %s%s", key, m[1], spell.Suggest(m[1], out.Labels.Sorted()))
			}
		}
	}
	return out
}

func settingNames(f *RuleFile) []string {
	var out []string
	for _, s := range f.Settings {
		out = append(out, s.Name)
	}
	return out
}

// expression parses and checks one expression; nil when it can not be parsed.
func (r *resolver) expression(f *RuleFile, at schema.Pos, what, text string) (*promql.Expr, promql.Labels) {
	bad := func(format string, args ...any) { r.faults.Add(at, what+": "+format, args...) }
	e, err := promql.Parse(text)
	if err != nil {
		bad("%v", err)
		return nil, nil
	}
	for _, name := range e.Settings() {
		s := f.Setting(name)
		if s == nil {
			bad("no setting %q under config%s", name, spell.Suggest(name, settingNames(f)))
			continue
		}
		s.used = true
	}
	labels, faults := e.Labels(r.labelsOf)
	for _, fault := range faults {
		bad("%v", fault)
	}
	for _, u := range e.Uses() {
		if m := r.prom[u.Metric]; m != nil && f.Pack != "compat" { // which copies counters
			checkUse(m, u, bad)
		}
	}
	for _, lost := range e.Sums(r.labelsOf) {
		if m := r.prom[lost.Metric]; m != nil {
			for _, a := range append(m.Scope.AllAttributes(), m.Attributes...) {
				if !a.IsAdditive() && slices.Contains(lost.Labels, a.Label) {
					bad("a sum of %s over %s means nothing: its values overlap", m.Prom, a.Label)
				}
			}
		}
	}
	return e, labels
}

// labelsOf are the labels of a metric's series, or of a recording rule's.
func (r *resolver) labelsOf(name string) ([]string, bool) {
	if rec := r.records[name]; rec != nil {
		return rec.Labels.Sorted(), true
	}
	if name == "up" {
		return targetLabels, true
	}
	m := r.prom[name]
	if m == nil || m.Instrument == "counter" && name != m.Prom || m.Instrument == "histogram" && name == m.Prom {
		return nil, false
	}
	all := append(slices.Clone(targetLabels), m.Labels()...)
	if m.Instrument == "histogram" && strings.HasSuffix(name, "_bucket") {
		all = append(all, "le")
	}
	return all, true
}

// countersWant are the functions that make sense of a count, and gaugesWant those that do of a gauge only.
var (
	countersWant = []string{"rate", "irate", "increase", "resets", "absent", "absent_over_time", "present_over_time", "timestamp"}
	gaugesRefuse = []string{"rate", "irate", "increase", "resets"}
)

// checkUse checks what is done with a metric.
func checkUse(m *Metric, u promql.Use, bad func(string, ...any)) {
	cumulative := m.Instrument == "counter" || m.Instrument == "histogram"
	switch {
	case len(m.Sources) == 0:
		bad("nobody reads %s yet: it would never say anything", u.Metric)
	case cumulative && !slices.Contains(countersWant, u.Function):
		bad("%s only ever rises; wants rate or increase", u.Metric)
	case !cumulative && slices.Contains(gaugesRefuse, u.Function):
		bad("%s of %s, which rises and falls", u.Function, u.Metric)
	}
}
