package resolve

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gpumeter/gpumeter/gen/schema"
	"github.com/gpumeter/gpumeter/spell"
)

// maxLabels is the most labels of ours a series may carry.
const maxLabels = 14

// Words the translation adds, which a name must therefore not bring itself.
var suffixWords = []string{
	"total", "ratio", "percent", "bytes", "seconds", "watts", "joules", "celsius", "hertz", "volts", "amperes",
	"ms", "mhz", "mw", "mj", "mb", "bucket", "sum", "count",
}

// checkMetric checks one entry as written.
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
	if t := m.Semconv; t != nil {
		for _, name := range append([]string{t.Name}, keys(t.Attributes)...) {
			if !otelName.MatchString(name) {
				faults.Add(t.Pos, "%s: semconv: %q is no OpenTelemetry name", m.Name, name)
			}
		}
	}
}

func keys[T any](m schema.Map[T]) []string {
	var out []string
	for _, e := range m {
		out = append(out, e.Key)
	}
	return out
}

// checkBrief wants one sentence.
func checkBrief(at schema.Pos, name, brief string, faults *schema.Faults) {
	switch {
	case strings.TrimSpace(brief) == "":
		faults.Add(at, "%s: empty brief", name)
	case strings.ContainsAny(brief, "\n\\"):
		faults.Add(at, "%s: a brief is one line without backslashes", name)
	case !strings.HasSuffix(brief, "."):
		faults.Add(at, "%s: a brief is a sentence and ends with a full stop", name)
	}
}

func checkBuckets(m schema.Metric, bad func(string, ...any)) {
	histogram, own := m.Instrument == "histogram", len(m.Buckets) > 0
	if !histogram && (own || m.ForeignBuckets) || histogram && own == m.ForeignBuckets {
		bad("a histogram has either buckets or foreign_buckets, and nothing else has them")
	}
	for i, b := range m.Buckets {
		text := strconv.FormatFloat(b, 'f', -1, 64)
		switch {
		case !(b >= 1e-4 && b < 1e6): // so written that it holds for NaN
			bad("bucket %v is outside [1e-4, 1e6), where text and push write it differently", b)
		case i > 0 && b <= m.Buckets[i-1]:
			bad("bucket %s does not rise", text)
		case b == math.Trunc(b):
			bad("bucket %s is whole: a push writes le=%q and a scrape le=%q", text, text, text+".0")
		}
	}
}

// checkLabels checks what the labels of a metric are together with those of its scope.
func (r *resolver) checkLabels(m *Metric) {
	for _, a := range m.Attributes {
		if slices.Contains(m.Scope.AllAttributes(), a) {
			r.faults.Add(m.Pos, "%s: every series of scope %s carries %s already", m.Name, m.Scope.Name, a.Key)
		}
	}
	if n := len(m.Labels()); n > maxLabels {
		r.faults.Add(m.Pos, "%s: %d labels; at most %d", m.Name, n, maxLabels)
	}
}

// checkRef checks where a source says it finds a metric.
func (r *resolver) checkRef(m *Metric, ref schema.Named[schema.SourceRef]) {
	bad := func(format string, args ...any) {
		r.faults.Add(ref.Pos, m.Name+": source "+ref.Key+": "+format, args...)
	}
	src := r.sources[ref.Key]
	if src == nil {
		bad("is not in spec/sources.yaml%s", spell.Suggest(ref.Key, r.sourceNames()))
		return
	}
	where := ref.Value.Where()
	unknown := false
	for _, key := range where {
		if !slices.Contains(src.Keys, key) {
			bad("it has no key %q%s", key, spell.Suggest(key, src.Keys))
			unknown = true
		}
	}
	// A call may read the members, or the sorts of link, that no numbered field gives.
	both := slices.Equal(where, []string{"call", "fields"}) || slices.Equal(where, []string{"call", "field"}) && m.Scope.Name == "link"
	if !unknown && !both && (len(where) == 0 && len(src.Keys) > 0 || len(where) > 1) {
		bad("wants exactly one of %s", strings.Join(src.Keys, ", "))
	}
	if s := ref.Value.Scale; s < 0 || math.IsInf(s, 0) || math.IsNaN(s) {
		bad("scale %v is no positive number", s)
	}
	if len(ref.Value.Field)+len(ref.Value.Fields) > 0 && m.Instrument == "histogram" {
		bad("a field is one number, and no histogram")
	}
	if len(m.Attributes) < len(m.Metric.Attributes) {
		return // an attribute is unknown, which is fault enough
	}
	if len(ref.Value.Field) > 0 && len(m.Attributes) > 0 && ref.Value.States == nil {
		bad("field reads one number, and the metric has attributes; write fields")
	}
	r.checkStates(m, ref)
	r.checkVersions(m, ref, schema.Named[schema.FieldID]{Pos: ref.Pos, Key: "field", Value: ref.Value.Field})
	if len(ref.Value.Fields) > 0 {
		r.checkFields(m, ref)
	}
}
