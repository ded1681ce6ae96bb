package gpu

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// page is what gpumeter says.
type page map[string]*dto.MetricFamily

func readPage(text string) (page, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("gpumeter's page: %w", err)
	}
	return families, nil
}

// selector names series of one GPU:
//
//	name{label=value,…}   the number of the one that has these labels, or the sum where there are several
//	name@label            the text of a label
//	name?label            the text of the label of the series that is 1
type selector struct {
	name, label string
	states      bool
	with        [][2]string
}

func selected(text string) selector {
	s := selector{name: text}
	if name, label, ok := strings.Cut(text, "@"); ok {
		return selector{name: name, label: label}
	}
	if name, label, ok := strings.Cut(text, "?"); ok {
		return selector{name: name, label: label, states: true}
	}
	if name, rest, ok := strings.Cut(text, "{"); ok {
		s.name = name
		for pair := range strings.SplitSeq(strings.TrimSuffix(rest, "}"), ",") {
			label, value, _ := strings.Cut(pair, "=")
			s.with = append(s.with, [2]string{label, value})
		}
	}
	return s
}

// series are those of a GPU that a selector names.
func (p page) series(uuid string, s selector) (out []*dto.Metric) {
	if p[s.name] == nil {
		return nil
	}
	for _, m := range p[s.name].Metric {
		fits := label(m, "gpu_uuid") == uuid
		for _, w := range s.with {
			fits = fits && label(m, w[0]) == w[1]
		}
		if fits {
			out = append(out, m)
		}
	}
	return out
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func value(m *dto.Metric) float64 {
	return m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
}

// number is that of a selector; there says whether there is any.
func (p page) number(uuid, text string) (n float64, there bool) {
	for _, m := range p.series(uuid, selected(text)) {
		n += value(m)
		there = true
	}
	return n, there
}

// word is the text of a selector's label, empty where there is none.
func (p page) word(uuid, text string) string {
	s := selected(text)
	for _, m := range p.series(uuid, s) {
		if !s.states || value(m) == 1 {
			return label(m, s.label)
		}
	}
	return ""
}

// values are the different values of a label among the series of a GPU, in order.
func (p page) values(uuid, name, of string) (out []string) {
	for _, m := range p.series(uuid, selector{name: name}) {
		if v := label(m, of); v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

// uuids are the GPUs the page tells of.
func (p page) uuids() (out []string) {
	if p["gpu_info"] == nil {
		return nil
	}
	for _, m := range p["gpu_info"].Metric {
		out = append(out, label(m, "gpu_uuid"))
	}
	return out
}

// without is the page without the series of a selector.
func (p page) without(uuid, text string) page {
	s := selected(text)
	gone := p.series(uuid, s)
	out := page{}
	for name, f := range p {
		if name != s.name {
			out[name] = f
			continue
		}
		kept := &dto.MetricFamily{Name: f.Name, Type: f.Type}
		for _, m := range f.Metric {
			if !slices.Contains(gone, m) {
				kept.Metric = append(kept.Metric, m)
			}
		}
		if len(kept.Metric) > 0 {
			out[name] = kept
		}
	}
	return out
}

// show is a number as short as it can be.
func show(n float64) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e15 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return strconv.FormatFloat(n, 'g', 9, 64)
}
