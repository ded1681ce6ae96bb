package metric

import (
	"errors"
	"fmt"
	"path"
)

// Select chooses among the metrics of the spec. A pattern is a group, a name (OpenTelemetry's or
// Prometheus') or a glob over either. A metric is on when it is on by default or included, and
// not excluded. A pattern that matches nothing, or a metric both included and excluded, is an error.
func Select(all []*Desc, include, exclude []string) (func(*Desc) bool, error) {
	included, err := match(all, include)
	if err != nil {
		return nil, fmt.Errorf("include: %w", err)
	}
	excluded, err := match(all, exclude)
	if err != nil {
		return nil, fmt.Errorf("exclude: %w", err)
	}
	var faults []error
	for _, d := range all {
		if by, out := included[d], excluded[d]; by != "" && out != "" {
			faults = append(faults, fmt.Errorf("%s is both included (by %q) and excluded (by %q)", d.Name, by, out))
		}
	}
	return func(d *Desc) bool { return (!d.OptIn || included[d] != "") && excluded[d] == "" }, errors.Join(faults...)
}

// match returns the pattern each metric is matched by.
func match(all []*Desc, patterns []string) (map[*Desc]string, error) {
	by := map[*Desc]string{}
	var faults []error
	for _, p := range patterns {
		hits := 0
		for _, d := range all {
			for _, word := range []string{d.Group, d.Name, d.Prom} {
				ok, err := path.Match(p, word)
				if err != nil {
					return nil, fmt.Errorf("pattern %q: %w", p, err)
				}
				if ok {
					by[d] = p
					hits++
				}
			}
		}
		if hits == 0 {
			faults = append(faults, fmt.Errorf("pattern %q matches no group and no metric", p))
		}
	}
	return by, errors.Join(faults...)
}
