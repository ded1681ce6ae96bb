package resolve_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gpumeter/gpumeter/gen/gentest"
)

const health = "data/health.yaml"

func TestHealth(t *testing.T) {
	h := gentest.Model(t).Health
	if len(h.Terms) != 3 || h.Terms[0].GoName != "HealthTermBadMood" || h.Terms[0].Span != 0 || h.Terms[1].Span != 90*time.Second {
		t.Fatalf("resolved as %+v", h)
	}
	mood, alarm := h.Terms[0].From[0], h.Terms[0].From[1]
	asking, io := h.Terms[1].From[0], h.Terms[1].From[1]
	narrow := h.Terms[2].From[0]
	for _, x := range []struct {
		what      string
		got, want any
	}{
		{"what counts of a state", mood.Indexes, []string{"[MoodCross]"}},
		{"what counts without an attribute", alarm.Indexes, []string{""}},
		{"what counts of a counter", asking.Indexes, []string{"[XIDActionReset]", "[XIDActionNone]"}},
		{"the least of a state, of counters", []float64{mood.Least, asking.Least, io.Least}, []float64{0, 2.5, 1}},
		{"the sorts of link", []string{mood.GoLink, io.GoLink, narrow.GoLink}, []string{"", "LinkTypeMesh", "LinkTypeBus"}},
		{"what it must not be below", []string{narrow.Below.Name, narrow.Load.Name}, []string{"gpu.link.width.limit", "gpu.utilization"}},
	} {
		if diff := cmp.Diff(x.want, x.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", x.what, diff)
		}
	}
}

func TestHealthPolicies(t *testing.T) {
	const at = "spec/" + health
	for _, x := range []struct{ old, new, want string }{
		{"term: asking", "term: asing", "spec/attributes.yaml:84: gpu.health.term: asking has no entry in " + at + "\n" +
			at + `:8: term "asing" is no member of gpu.health.term; did you mean "asking"?`},
		{"term: narrow", "term: asking", `spec/attributes.yaml:85: gpu.health.term: narrow has no entry in ` + at + "\n" +
			at + `:15: term asking: is there twice, first at ` + at + `:8`},
		{"weight: 0.6", "weight: 1.5", at + `:2: term bad_mood: weight 1.5 is not above 0 and at most 1`},
		{"weight: 0.6", "weight: 0", at + `:2: term bad_mood: weight 0 is not above 0 and at most 1`},
		{"weight: 0.6", "weight: .nan", at + `:2: term bad_mood: weight NaN is not above 0 and at most 1`},
		{"why: It may know.", "why: It may know", at + `:8: term asking: why: a brief is a sentence and ends with a full stop`},
		{"window: 90s", "window: an hour", at + `:8: term asking: window "an hour" is no duration of whole seconds, as "1h" or "5m", of at most 24h0m0s`},
		{"window: 90s", "window: 90ms", at + `:8: term asking: window "90ms" is no duration of whole seconds, as "1h" or "5m", of at most 24h0m0s`},
		{"window: 90s", "window: -1h", at + `:8: term asking: window "-1h" is no duration of whole seconds, as "1h" or "5m", of at most 24h0m0s`},
		{"window: 90s", "window: 48h", at + `:8: term asking: window "48h" is no duration of whole seconds, as "1h" or "5m", of at most 24h0m0s`},
		{"    window: 1h\n", "", at + `:19: term narrow: gpu.link.width: a window is for what counts or was seen, and a state has none`},
		{"weight: 0.6", "weight: 0.6\n    window: 5m", at + ":7: term bad_mood: gpu.mood: a window is for what counts or was seen, and a state has none\n" +
			at + ":8: term bad_mood: gpu.alarm: a window is for what counts or was seen, and a state has none"},
		{"metric: gpu.alarm", "metric: gpu.alram", at + `:7: term bad_mood: gpu.alram: there is no such metric; did you mean "gpu.alarm"?`},
		{"metric: gpu.alarm", "metric: gpumeter.build.info", at + `:7: term bad_mood: gpumeter.build.info: is of scope self, and not of a device or a link`},
		{"metric: gpu.alarm", "metric: gpu.load", at + `:7: term bad_mood: gpu.load: wants a metric with one enum attribute at most`},
		{"metric: gpu.alarm", "metric: gpu.power.draw", at + `:7: term bad_mood: gpu.power.draw: wants a counter, a state, or below`},
		{"metric: gpu.alarm", "metric: gpu.alarm, values: [cross]", at + `:7: term bad_mood: gpu.alarm: values: it has no attribute`},
		{"metric: gpu.alarm", "metric: gpu.alarm, link: bus", at + `:7: term bad_mood: gpu.alarm: link: the scope device has no sorts of link`},
		{"metric: gpu.alarm", "metric: gpu.alarm, least: 2", at + `:7: term bad_mood: gpu.alarm: least is by how much a counter rises`},
		{"metric: gpu.alarm", "metric: gpu.alarm, fresh: true", at + `:7: term bad_mood: gpu.alarm: fresh is of counters`},
		{"metric: gpu.alarm", "metric: gpu.alarm, busy: 0.5", at + `:7: term bad_mood: gpu.alarm: busy, above 0 and at most 1, goes with below`},
		{"values: [cross]", "values: [corss]", at + `:6: term bad_mood: gpu.mood: "corss" is no member of gpu.mood; did you mean "cross"?`},
		{"least: 2.5", "least: -1", at + `:13: term asking: gpu.events.asking: least is by how much a counter rises`},
		{"link: mesh", "link: mehs", at + `:14: term asking: gpu.link.io: "mehs" is no member of gpu.link.type; did you mean "mesh"?`},
		{", link: mesh", "", at + `:14: term asking: gpu.link.io: wants link: which sort of link has it`},
		{"busy: 0.5", "busy: 1.5", at + `:20: term narrow: gpu.link.width: busy, above 0 and at most 1, goes with below`},
		{", busy: 0.5", "", at + `:20: term narrow: gpu.link.width: busy, above 0 and at most 1, goes with below`},
		{"below: gpu.link.width.limit", "below: gpu.link.width.limits", at + `:20: term narrow: gpu.link.width: below: there is no metric gpu.link.width.limits; did you mean "gpu.link.width.limit"?`},
		{"below: gpu.link.width.limit", "below: gpu.alarm", at + `:20: term narrow: gpu.link.width: below: wants two numbers of a link in the same unit, without attributes`},
	} {
		refused(t, x.new, x.want, edit{health, x.old, x.new})
	}
	refused(t, "the order", at+":8: term asking: stands after bad_mood; terms stand in the order of gpu.health.term",
		edit{"attributes.yaml", "      - {id: bad_mood, brief: \"It is cross, a | b.\"}\n      - {id: asking, brief: It asked for a reset.}", "      - {id: asking, brief: It asked for a reset.}\n      - {id: bad_mood, brief: \"It is cross, a | b.\"}"})
	refused(t, "no load", at+":20: term narrow: gpu.link.width: below: no metric gpu.utilization, which tells whether a device is at work",
		edit{"metrics/feeling.yaml", "gpu.utilization", "gpu.use"})
	refused(t, "nobody reads it", at+":7: term bad_mood: gpu.alarm: nobody reads it",
		edit{"metrics/feeling.yaml", "brief: Whether it rings.\n    instrument: gauge\n    unit: \"\"\n    sources:\n      tool: {column: Feeling}", "brief: Whether it rings.\n    instrument: gauge\n    unit: \"\"\n    sources: {}"})
	refused(t, "no attribute", at+":1: no enum attribute gpu.health.term in spec/attributes.yaml, whose members are the terms",
		edit{"attributes.yaml", "key: gpu.health.term", "key: gpu.health.terms"},
		edit{"metrics/feeling.yaml", "[gpu.health.term]", "[gpu.health.terms]"})
}
