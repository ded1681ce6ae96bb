package resolve

import (
	"math"
	"slices"
	"strings"

	"github.com/gpumeter/gpumeter/gen/schema"
	"github.com/gpumeter/gpumeter/spell"
)

// maxLabels is the most labels of ours a series may carry.
const maxLabels = 14

// Base units, and what to write instead of the others.
var (
	baseUnits = []string{"", "1", "s", "By", "W", "J", "Cel", "Hz", "V", "A", "By/s", "{USD}", "{USD}/h"}
	scaled    = map[string]string{
		"mW": "W", "kW": "W", "mJ": "J", "kJ": "J", "Wh": "J", "kW.h": "J", "uJ": "J",
		"KiBy": "By", "MiBy": "By", "GiBy": "By", "kBy": "By", "MBy": "By", "GBy": "By", "bit": "By",
		"ns": "s", "us": "s", "ms": "s", "min": "s", "h": "s", "d": "s",
		"kHz": "Hz", "MHz": "Hz", "GHz": "Hz", "%": "1", "K": "Cel", "mV": "V", "mA": "A",
		"KiBy/s": "By/s", "MiBy/s": "By/s", "MBy/s": "By/s", "USD": "{USD}", "USD/h": "{USD}/h",
	}
	// Words the translation adds, which a name must therefore not bring itself.
	suffixWords = []string{
		"total", "ratio", "percent", "bytes", "seconds", "watts", "joules", "celsius", "hertz", "volts", "amperes",
		"ms", "mhz", "mw", "mj", "mb", "bucket", "sum", "count",
	}
)

// metric checks one entry as written.
func checkMetric(m schema.Metric, faults *schema.Faults) {
	bad := func(format string, args ...any) { faults.Add(m.Pos, m.Name+": "+format, args...) }
	if !otelName.MatchString(m.Name) {
		bad("a name is lower-case words joined by dots and underscores")
	}
	for _, w := range strings.FieldsFunc(m.Name, func(r rune) bool { return r == '.' || r == '_' }) {
		if m.Instrument == "gauge" && w == "total" {
			bad("a gauge must not be called total")
		} else if slices.Contains(suffixWords, w) {
			bad("the word %q is added by the translation to Prometheus; leave it out", w)
		}
	}
	checkBrief(m.Pos, m.Name, m.Brief, faults)
	checkUnit(m, bad)
	checkBuckets(m, bad)
	if len(m.Sources) == 0 {
		bad("no source reads it; a metric is written in the commit that reads it")
	}
}

// checkBrief wants one sentence.
func checkBrief(at schema.Pos, name, brief string, faults *schema.Faults) {
	switch {
	case strings.TrimSpace(brief) == "":
		faults.Add(at, "%s: empty brief", name)
	case !strings.HasSuffix(brief, "."):
		faults.Add(at, "%s: a brief is a sentence and ends with a full stop", name)
	case strings.ContainsAny(brief, "\n\\"):
		faults.Add(at, "%s: a brief is one line without backslashes", name)
	}
}

func checkUnit(m schema.Metric, bad func(string, ...any)) {
	counted := strings.HasPrefix(m.Unit, "{") && strings.HasSuffix(m.Unit, "}")
	if base, ok := scaled[m.Unit]; ok {
		bad("unit %q is not a base unit; write %q and a scale", m.Unit, base)
	} else if !counted && !slices.Contains(baseUnits, m.Unit) {
		bad("unknown unit %q%s", m.Unit, spell.Suggest(m.Unit, baseUnits))
	}
	if (m.Unit == "1" || m.Unit == "") && m.Instrument != "gauge" && m.Instrument != "histogram" {
		bad("a ratio, a state or an info is a gauge, not a %s", m.Instrument)
	}
}

func checkBuckets(m schema.Metric, bad func(string, ...any)) {
	if (m.Instrument == "histogram") != (len(m.Buckets) > 0) {
		bad("buckets belong to a histogram, and a histogram needs them")
	}
	for i, b := range m.Buckets {
		switch {
		case i > 0 && b <= m.Buckets[i-1]:
			bad("bucket %v does not rise", b)
		case b < 1e-4 || b >= 1e6:
			bad("bucket %v is outside [1e-4, 1e6), where text and push write it differently", b)
		case b == math.Trunc(b):
			bad("bucket %v is whole, so a push would write le=%q and a scrape le=%q", b, "1", "1.0")
		}
	}
}

// checkRef checks where a source says it finds a metric.
func (r *resolver) checkRef(m *Metric, ref schema.Named[schema.SourceRef]) {
	bad := func(format string, args ...any) {
		r.faults.Add(ref.Pos, m.Name+": source "+ref.Key+": "+format, args...)
	}
	src := r.sources[ref.Key]
	if src == nil {
		bad("unknown%s", spell.Suggest(ref.Key, r.sourceNames()))
		return
	}
	where := ref.Value.Where()
	for _, key := range where {
		if !slices.Contains(src.Keys, key) {
			bad("is not found by %q (it knows %s)", key, strings.Join(src.Keys, ", "))
		}
	}
	if len(where) == 0 && len(src.Keys) > 0 || len(where) > 1 {
		bad("wants exactly one of %s", strings.Join(src.Keys, ", "))
	}
	if len(ref.Value.Field) > 0 && len(m.Attributes) > 0 {
		bad("field reads one number, and the metric has attributes; write fields")
	}
	if len(ref.Value.Fields) > 0 {
		r.checkFields(m, ref.Value.Fields, bad)
	}
	src.Metrics = append(src.Metrics, m)
}

func (r *resolver) checkFields(m *Metric, fields schema.Map[schema.FieldID], bad func(string, ...any)) {
	if len(m.Attributes) != 1 || !m.Attributes[0].Closed() {
		bad("fields wants exactly one enum attribute")
		return
	}
	var ids []string
	for _, member := range m.Attributes[0].Members {
		ids = append(ids, member.ID)
	}
	for _, f := range fields {
		if !slices.Contains(ids, f.Key) {
			bad("%q is no member of %s%s", f.Key, m.Attributes[0].Key, spell.Suggest(f.Key, ids))
		}
		for _, v := range f.Value {
			if _, _, err := DriverRange(v.Driver); err != nil {
				bad("%v", err)
			}
		}
	}
}
