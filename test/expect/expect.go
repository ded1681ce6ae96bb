// Package expect says whether a page of metrics holds what is expected of it, which is a selector as
// PromQL has it, and what the values of the series are. There must be one such series, and every one
// must have such a value:
//
//	gpu_up == 1
//	gpu_power_draw_watts{gpu_index=~"0|1"} >= 100+20
//
// Without a comparison it is enough that there is one. Behind a ! there must be none:
//
//	!gpu_power_draw_watts{gpu_index="2"}
//	!{gpu_index="2"} < 0
package expect

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// expectation is one.
type expectation struct {
	text     string
	none     bool
	name     string // empty: any
	matchers []*labels.Matcher
	compare  func(got, want float64) bool // nil: any value
	number   float64
}

var (
	expectationForm = regexp.MustCompile(`^(!?)([a-z_][a-z0-9_]*)?(?:\{(.*)\})?(?:\s*(==|!=|>=|<=|>|<)\s*(\S+))?$`)
	matcherForm     = regexp.MustCompile(`^\s*([a-z_][a-z0-9_]*)(=~|!~|!=|=)"([^"]*)"\s*(?:,|$)`)
)

var matchTypes = map[string]labels.MatchType{
	"=": labels.MatchEqual, "!=": labels.MatchNotEqual, "=~": labels.MatchRegexp, "!~": labels.MatchNotRegexp,
}

var comparisons = map[string]func(got, want float64) bool{
	"==": func(got, want float64) bool { return got == want },
	"!=": func(got, want float64) bool { return got != want },
	">=": func(got, want float64) bool { return got >= want },
	"<=": func(got, want float64) bool { return got <= want },
	">":  func(got, want float64) bool { return got > want },
	"<":  func(got, want float64) bool { return got < want },
}

// read reads what is expected.
func read(text string) (expectation, error) {
	parts := expectationForm.FindStringSubmatch(text)
	if parts == nil || parts[2] == "" && parts[3] == "" {
		return expectation{}, fmt.Errorf("%s: not a selector, and a comparison behind it", text)
	}
	e := expectation{text: text, none: parts[1] != "", name: parts[2], compare: comparisons[parts[4]]}
	for rest := parts[3]; rest != ""; {
		m := matcherForm.FindStringSubmatch(rest)
		if m == nil {
			return expectation{}, fmt.Errorf("%s: %s is no label", text, rest)
		}
		matcher, err := labels.NewMatcher(matchTypes[m[2]], m[1], m[3])
		if err != nil {
			return expectation{}, fmt.Errorf("%s: %w", text, err)
		}
		e.matchers = append(e.matchers, matcher)
		rest = rest[len(m[0]):]
	}
	if e.compare == nil {
		return e, nil
	}
	for term := range strings.SplitSeq(parts[5], "+") {
		n, err := strconv.ParseFloat(term, 64)
		if err != nil {
			return expectation{}, fmt.Errorf("%s: %w", text, err)
		}
		e.number += n
	}
	return e, nil
}

// Holds says whether a comparison of PromQL's does.
func Holds(got float64, sign string, want float64) bool { return comparisons[sign](got, want) }

// Lacking says what a page lacks of all that is expected, one line each, with what it has under the
// same names.
func Lacking(page string, expected ...string) (lacks []string, err error) {
	samples, err := readPage(page)
	if err != nil {
		return nil, err
	}
	for _, text := range expected {
		e, err := read(text)
		if err != nil {
			return nil, err
		}
		if what := e.unmet(samples); what != "" {
			lacks = append(lacks, what)
			for _, s := range samples {
				if s.name() == e.name {
					lacks = append(lacks, fmt.Sprintf("\t%s %v", s.labels, s.value))
				}
			}
		}
	}
	return lacks, nil
}

// Value is that of the one series of a page that the selector chooses.
func Value(page, selector string) (float64, error) {
	found, err := values(page, selector)
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%s: %d series", selector, len(found))
	}
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

// Sum is of all series of a page that the selector chooses.
func Sum(page, selector string) (sum float64, err error) {
	found, err := values(page, selector)
	for _, v := range found {
		sum += v
	}
	return sum, err
}

func values(page, selector string) (found []float64, err error) {
	samples, err := readPage(page)
	if err != nil {
		return nil, err
	}
	e, err := read(selector)
	for _, s := range samples {
		if err == nil && e.selects(s) {
			found = append(found, s.value)
		}
	}
	return found, err
}

// sample is one series of a page.
type sample struct {
	labels labels.Labels // the name among them
	value  float64
}

func (s sample) name() string { return s.labels.Get(model.MetricNameLabel) }

func readPage(page string) ([]sample, error) {
	var out []sample
	parser := textparse.NewPromParser([]byte(page), labels.NewSymbolTable(), false)
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the page does not parse: %w", err)
		}
		if entry == textparse.EntrySeries {
			var s sample
			_, _, s.value = parser.Series()
			parser.Labels(&s.labels)
			out = append(out, s)
		}
	}
}

// unmet says what a page lacks, in one line; it is empty when nothing does.
func (e expectation) unmet(page []sample) string {
	there := false
	for _, s := range page {
		if !e.selects(s) {
			continue
		}
		met := e.compare == nil || e.compare(s.value, e.number)
		if met == e.none {
			return fmt.Sprintf("%s: it is %s %v", e.text, s.labels, s.value)
		}
		there = true
	}
	if !there && !e.none {
		return e.text + ": there is none"
	}
	return ""
}

func (e expectation) selects(s sample) bool {
	if e.name != "" && s.name() != e.name {
		return false
	}
	for _, m := range e.matchers {
		if !m.Matches(s.labels.Get(m.Name)) {
			return false
		}
	}
	return true
}
