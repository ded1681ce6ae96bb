package definition

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/gpumeter/gpumeter/spell"
)

// index finds what a name means.
type index struct {
	spec    *spec
	metrics []definition
	root    fs.FS // with the XID errors
	rules   fs.FS // with the alerts
}

// find returns what the names mean; each name must mean something.
func (x *index) find(names []string) (*result, error) {
	wanted := make([]bool, len(x.metrics))
	out := new(result)
	var faults []error
	for _, name := range names {
		hits, err := x.meant(name, out)
		if err != nil {
			faults = append(faults, err)
		}
		for _, i := range hits {
			wanted[i] = true
		}
	}
	for i, d := range x.metrics {
		if wanted[i] {
			out.metrics = append(out.metrics, d)
		}
	}
	return out, errors.Join(faults...)
}

// meant returns the indices of the metrics that a name means, or adds an XID error or alerts to out.
// Our own names come first: other exporters use some of them for something else.
func (x *index) meant(name string, out *result) ([]int, error) {
	own, err := x.own(name)
	if err != nil || len(own) > 0 {
		return own, err
	}
	if foreign := x.positions(func(d definition) bool { return slices.Contains(d.foreignWords(), name) }); len(foreign) > 0 {
		return foreign, nil
	}
	if code, ok := xidCode(name); ok {
		one, err := x.xid(code)
		if err == nil && !slices.ContainsFunc(out.xids, func(o xid) bool { return o.Code == code }) {
			out.xids = append(out.xids, one)
		}
		return nil, err
	}
	if below := x.positions(func(d definition) bool { return d.hasPrefix(name) }); len(below) > 0 {
		return below, nil
	}
	alerts, err := loadAlerts(x.rules)
	if err != nil {
		return nil, err
	}
	var known []string
	hit := false
	for _, a := range alerts {
		known = append(known, a.Name)
		if ok, _ := path.Match(name, a.Name); ok || strings.EqualFold(name, a.Name) { // own has checked the pattern
			hit = true
			if !slices.ContainsFunc(out.alerts, func(o alert) bool { return o.Name == a.Name }) {
				out.alerts = append(out.alerts, a)
			}
		}
	}
	if hit {
		return nil, nil
	}
	for _, d := range x.metrics {
		known = append(append(known, d.words()...), d.foreignWords()...)
	}
	return nil, fmt.Errorf("%w %q%s", ErrName, name, spell.Suggest(name, known))
}

// own returns the indices of the metrics whose name or group the name equals or matches.
func (x *index) own(name string) ([]int, error) {
	if _, err := path.Match(name, ""); err != nil {
		return nil, fmt.Errorf("%w %q: %w", ErrName, name, err)
	}
	return x.positions(func(d definition) bool {
		return slices.ContainsFunc(d.words(), func(word string) bool { ok, _ := path.Match(name, word); return ok })
	}), nil
}

// positions are the indices of the metrics for which holds returns true.
func (x *index) positions(holds func(definition) bool) (out []int) {
	for i, d := range x.metrics {
		if holds(d) {
			out = append(out, i)
		}
	}
	return out
}

// hasPrefix reports whether the name is the beginning of the metric's, up to a dot or an underscore.
func (d definition) hasPrefix(name string) bool {
	return strings.HasPrefix(d.OpenTelemetry, strings.TrimSuffix(name, ".")+".") || strings.HasPrefix(d.Prometheus, strings.TrimSuffix(name, "_")+"_")
}

// words are what a metric is called here: also the names of the series a histogram is made of,
// and OpenMetrics' name of a counter, for these are what one sees in a query or on a page.
func (d definition) words() []string {
	out := []string{d.Group, d.OpenTelemetry, d.Prometheus}
	switch d.Type {
	case "histogram":
		out = append(out, d.Prometheus+"_bucket", d.Prometheus+"_sum", d.Prometheus+"_count")
	case "counter":
		out = append(out, strings.TrimSuffix(d.Prometheus, "_total"))
	}
	return out
}

// foreignWords are what others call it.
func (d definition) foreignWords() []string {
	var out []string
	if d.Twin != nil {
		out = append(out, d.Twin.Name)
	}
	for _, e := range d.Elsewhere {
		out = append(out, e.Name)
	}
	return out
}
