package e2e

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// expectation is what a page is to hold: a selector as PromQL has it, and what the values of the
// series are. There must be one such series, and every one must have such a value:
//
//	gpu_up == 1
//	gpu_power_draw_watts{gpu_index=~"0|1"} >= 100+20
//
// Without a comparison it is enough that there is one. Behind a ! there must be none:
//
//	!gpu_power_draw_watts{gpu_index="2"}
//	!{gpu_index="2"} < 0
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

func expect(text string) (expectation, error) {
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

func TestExpectations(t *testing.T) {
	const page = `# TYPE up gauge
up{gpu="0",model="a, b"} 1
up{gpu="1",model="c"} 0
watts{gpu="0"} 700
`
	for text, want := range map[string]string{
		`up`:                             "",
		`up{gpu="1"} == 0`:               "",
		`up{gpu="1"}==0`:                 "",
		`up{gpu=~"[01]"} <= 1`:           "",
		`up{gpu!~"[12]"} > 0`:            "",
		`up{gpu!="1",model="a, b"} != 0`: "",
		`watts >= 200+500`:               "",
		`!down`:                          "",
		`!up{gpu="2"}`:                   "",
		`!{gpu="1",__name__!="up"}`:      "",
		`!up < 0`:                        "",
		`up == 1`:                        `up == 1: it is {__name__="up", gpu="1", model="c"} 0`,
		`up{gpu="2"}`:                    `up{gpu="2"}: there is none`,
		`up{gpu="2"} == 1`:               `up{gpu="2"} == 1: there is none`,
		`!watts`:                         `!watts: it is {__name__="watts", gpu="0"} 700`,
		`!up == 0`:                       `!up == 0: it is {__name__="up", gpu="1", model="c"} 0`,
		`watts > 700`:                    `watts > 700: it is {__name__="watts", gpu="0"} 700`,
		`== 1`:                           `== 1: not a selector, and a comparison behind it`,
		`up is 1`:                        `up is 1: not a selector, and a comparison behind it`,
		`up{gpu=1}`:                      `up{gpu=1}: gpu=1 is no label`,
		`up == one`:                      `up == one: strconv.ParseFloat: parsing "one": invalid syntax`,
	} {
		samples, err := readPage(page)
		if err != nil {
			t.Fatal(err)
		}
		e, err := expect(text)
		got := e.unmet(samples)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	if _, err := readPage("up{\n"); err == nil {
		t.Error("a page that does not parse was taken")
	}
}
