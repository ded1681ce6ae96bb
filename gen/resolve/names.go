package resolve

import (
	"regexp"
	"strings"

	"github.com/prometheus/otlptranslator"

	"github.com/gpumeter/gpumeter/gen/schema"
)

// The translation Prometheus' own OTLP receiver applies by default, so that a metric scraped and
// the same metric pushed bear one name.
var (
	metricNamer = otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	unitNamer   = otlptranslator.UnitNamer{}
	labelNamer  = otlptranslator.LabelNamer{PreserveMultipleUnderscores: true}
)

var translatedTypes = map[string]otlptranslator.MetricType{
	"gauge":         otlptranslator.MetricTypeGauge,
	"counter":       otlptranslator.MetricTypeMonotonicCounter,
	"updowncounter": otlptranslator.MetricTypeNonMonotonicCounter,
	"histogram":     otlptranslator.MetricTypeHistogram,
}

var (
	otelName = regexp.MustCompile(`^[a-z][a-z0-9]*([._][a-z0-9]+)*$`)
	promName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
)

// promNames translates a metric's name and finds the unit's word at its end.
func promNames(m schema.Metric) (name, unit string, err error) {
	name, err = metricNamer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: translatedTypes[m.Instrument]})
	if err != nil {
		return "", "", err
	}
	unit = unitNamer.Build(m.Unit)
	if m.Unit == "1" && m.Instrument == "gauge" {
		unit = "ratio"
	}
	if !strings.HasSuffix(strings.TrimSuffix(name, "_total"), "_"+unit) {
		unit = ""
	}
	return name, unit, nil
}

// Words Go writes in capitals.
var initialisms = map[string]bool{
	"gpu": true, "uuid": true, "pci": true, "cuda": true, "ecc": true, "xid": true, "cpu": true, "ok": true,
	"sm": true, "id": true, "jpeg": true, "ofa": true, "mig": true, "pcie": true, "sw": true, "hw": true,
}

// camel makes an exported Go name of words joined by dots, underscores or dashes.
func camel(s string) string {
	var b strings.Builder
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return r == '.' || r == '_' || r == '-' }) {
		if initialisms[w] {
			b.WriteString(strings.ToUpper(w))
		} else {
			b.WriteString(strings.ToUpper(w[:1]) + w[1:])
		}
	}
	return b.String()
}

// goField names a metric within its group's struct: gpu.power.draw in group power is Draw.
func goField(name, prefix, group string) string {
	rest := strings.TrimPrefix(name, prefix+".")
	if name == prefix { // a scope of one metric
		rest = name[strings.LastIndexByte(name, '.')+1:]
	}
	return camel(strings.TrimPrefix(rest, group+"."))
}

// goAttribute names an attribute's Go type and field: gpu.power.limit.type is PowerLimitType.
func goAttribute(key string) string {
	for _, p := range []string{"gpu.", "gpumeter."} {
		key = strings.TrimPrefix(key, p)
	}
	return camel(key)
}
