package definition

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gpumeter/gpumeter/spell"
)

// ErrName says that a name means nothing, which is the asker's fault.
var ErrName = errors.New("wrong name")

// find returns the definitions that the names mean; each name must mean one.
func find(all []definition, names []string) ([]definition, error) {
	wanted := make([]bool, len(all))
	var faults []error
	for _, name := range names {
		hits, err := meant(all, name)
		if err != nil {
			faults = append(faults, err)
		}
		for _, i := range hits {
			wanted[i] = true
		}
	}
	var out []definition
	for i, d := range all {
		if wanted[i] {
			out = append(out, d)
		}
	}
	return out, errors.Join(faults...)
}

// meant returns the places of what a name means. Our own names come first: other exporters use
// some of them for something else.
func meant(all []definition, name string) ([]int, error) {
	var own, foreign []int
	var known []string
	for i, d := range all {
		words := d.words()
		for _, word := range words {
			ok, err := path.Match(name, word)
			if err != nil {
				return nil, fmt.Errorf("%w %q: %w", ErrName, name, err)
			}
			if ok {
				own = append(own, i)
				break
			}
		}
		if slices.Contains(d.foreignWords(), name) {
			foreign = append(foreign, i)
		}
		known = append(append(known, words...), d.foreignWords()...)
	}
	switch {
	case len(own) > 0:
		return own, nil
	case len(foreign) > 0:
		return foreign, nil
	}
	return nil, fmt.Errorf("%w %q: no metric or group is called so%s", ErrName, name, spell.Suggest(name, known))
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
