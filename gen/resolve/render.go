package resolve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/gpumeter/gpumeter/gen/promql"
)

// Rule is one rule as Prometheus has it.
type Rule struct {
	Record, Alert string // one of them
	Expr          string
	For           string
	Labels        []Text
	Annotations   []Text
}

// Text is a label or an annotation.
type Text struct{ Name, Value string }

// Put says what is put into rules.
type Put struct {
	Setting  func(*Setting) string                      // in the place of a number or a text
	For      func(*Setting) string                      // the duration of an alert
	Window   func(*Alert) (window, step, points string) // of an alert that holds its time itself: longer than that by a step, and its steps
	Cluster  string                                     // the name of the label cluster; empty: that
	Matchers []*labels.Matcher                          // into every selector
	Severity func(*Alert) string                        //
	Runbook  func(*Alert) string                        // its address
	Print    func(*promql.Expr) string                  // an expression
}

// Window is the default of Put: it is looked each 30 s whether an alert has held its time. The steps lie
// on the clock, so that an alert with no time to hold looks at a second that has just been.
func Window(held time.Duration) (window, step, points string) {
	every := 30 * time.Second
	if held == 0 {
		every = time.Second
	}
	return model.Duration(held + every).String(), model.Duration(every).String(), strconv.Itoa(int(held/every) + 1)
}

// Rules are those of a group, in their order: an alert about a device has a rule before it that holds
// its time over the device alone, and one about a workload or an engine has one that keeps its number.
func (g *RuleGroup) Rules(f *RuleFile, put Put) ([]Rule, error) {
	var out []Rule
	with := func(e *promql.Expr) (*promql.Expr, error) {
		if put.Cluster != "" {
			var err error
			if e, err = e.Rename("cluster", put.Cluster); err != nil {
				return nil, err
			}
		}
		return e.With(func(name string) (string, bool) {
			s := f.Setting(name)
			if s == nil {
				return "", false
			}
			return put.Setting(s), true
		}, put.Matchers...)
	}
	for _, rec := range g.Recordings {
		e, err := with(rec.Expr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rec.Record, err)
		}
		out = append(out, Rule{Record: rec.Record, Expr: put.Print(e), Labels: rec.Static})
	}
	for _, a := range g.Alerts {
		e, err := with(a.Expr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Alert.Alert, err)
		}
		alert := Rule{
			Alert: a.Alert.Alert, For: put.For(a.For), Labels: []Text{{"severity", put.Severity(a)}},
			Annotations: []Text{{"summary", strings.TrimSpace(a.Summary)}, {"description", strings.TrimSpace(a.Description)}, {"runbook_url", put.Runbook(a)}},
		}
		if a.Device() {
			record := a.HeldAs()
			held := e.Held(put.Window(a))
			if a.While != nil {
				also, err := with(a.While)
				if err != nil {
					return nil, fmt.Errorf("%s: while: %w", a.Alert.Alert, err)
				}
				held = held.And(put.labels(DeviceLabels()), also)
			}
			out = append(out, Rule{Record: record, Expr: put.Print(held)})
			if e, err = promql.Joined(record, `gpu_owner_info{gpu_partition_uuid=""}`, DeviceLabels(), OwnerLabels()); err != nil {
				return nil, fmt.Errorf("%s: %w", a.Alert.Alert, err)
			}
			if a.Victims != nil {
				if e, err = e.Victims(record, a.Victims, DeviceLabels(), OwnerLabels()); err != nil {
					return nil, fmt.Errorf("%s: victims: %w", a.Alert.Alert, err)
				}
			}
			if e, err = with(e); err != nil {
				return nil, fmt.Errorf("%s: %w", a.Alert.Alert, err)
			}
			alert.For = ""
		}
		if len(a.Over) > 0 {
			value, sign, limit, _ := e.Compared()
			out = append(out, Rule{Record: a.ValueAs(), Expr: put.Print(value)})
			window, step, points := put.Window(a)
			if e, err = promql.HeldOver(a.ValueAs(), sign, limit, put.labels(a.Over), window, step, points); err != nil {
				return nil, fmt.Errorf("%s: %w", a.Alert.Alert, err)
			}
			alert.For = ""
		}
		for _, l := range []Text{{"namespace", "k8s_namespace_name"}, {"pod", "k8s_pod_name"}} { // routing goes by these
			if a.Labels.Has(l.Value) {
				alert.Labels = append(alert.Labels, Text{l.Name, "{{ $labels." + l.Value + " }}"})
			}
		}
		alert.Expr = put.Print(e)
		out = append(out, alert)
	}
	return out, nil
}

// labels has the name that is put in of the label cluster.
func (p Put) labels(names []string) []string {
	out := slices.Clone(names)
	for i := range out {
		if out[i] == "cluster" && p.Cluster != "" {
			out[i] = p.Cluster
		}
	}
	return out
}

// HeldAs is the rule that holds the time of an alert about a device.
func (a *Alert) HeldAs() string { return "gpu:" + snake(a.Alert.Alert) + ":held" }

// ValueAs is the rule that keeps what an alert about a workload or an engine compares.
func (a *Alert) ValueAs() string { return a.About + ":" + snake(a.Alert.Alert) + ":value" }

// snake writes CamelCase as lower-case words joined by underscores.
func snake(camel string) string {
	var b strings.Builder
	letters := []rune(camel)
	for i, c := range letters {
		upper := unicode.IsUpper(c)
		if i > 0 && upper && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
