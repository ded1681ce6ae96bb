package sim

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func TestFaultsOfANode(t *testing.T) {
	for node, want := range map[string]asks{
		"h100x8":                          nil,
		"mixed,engine-slow":               {{engineSlow, 0, math.MaxInt64}},
		"engine-slow , MIXED":             {{engineSlow, 0, math.MaxInt64}},
		"h100x1,Engine-Outage@90s,l40sx1": {{engineOutage, 90 * time.Second, math.MaxInt64}},
		"h100x1,engine-errors@1m+30s,engine-long@0s+1h30m": {
			{engineErrors, time.Minute, 90 * time.Second}, {engineLong, 0, 90 * time.Minute}},
	} {
		slots, got, err := parse(node)
		if err != nil || !slices.Equal(got, want) || len(slots) == 0 {
			t.Errorf("%s: %v in %d boards, %v; want %v", node, got, len(slots), err, want)
		}
	}
	for node, want := range map[string]string{
		"h100x8,engine-slo":           `"engine-slo": no fault "engine-slo"; did you mean "engine-slow"?; faults are engine-slow, engine-saturated`,
		"h100x8,slow@1m":              `no fault "slow"`,
		"h100x8,engine-slow@":         `invalid time ""; write NAME@FROM+FOR`,
		"h100x8,engine-slow@5":        `invalid time "5"`,
		"h100x8,engine-slow@1m+":      `invalid time ""`,
		"h100x8,engine-slow@-1m":      `invalid time "-1m"`,
		"h100x8,engine-slow@1m+9999h": `invalid time "9999h"`,
		"engine-slow":                 `has no device; models are`,
	} {
		if _, err := New(Config{Node: node}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", node, err, want)
		}
	}
}

// look is what was seen of an engine in a while, and how many of it answered at its end.
type look struct {
	up                              int
	firstToken, between, duration   float64 // mean seconds
	waiting, running, cache         float64 // at the end
	tokens, ended, failed, preempts float64 // a second
}

// watch looks at an engine from the tenth minute to the twentieth.
func watch(t *testing.T, node string) look {
	t.Helper()
	c, r, _ := startEngines(t, node, 7)
	c.moveTo(10 * time.Minute)
	var before telemetry.Inference
	if first := engines(t, r); len(first) > 0 {
		before = first[0].Read.Inference
	}
	const seconds = 600
	c.moveTo(10*time.Minute + seconds*time.Second)
	all := engines(t, r)
	if len(all) == 0 {
		return look{}
	}
	x := &all[0].Read.Inference
	mean := func(now, past []telemetry.KeyedHistogram) float64 {
		return (now[0].Histogram.Sum - past[0].Histogram.Sum) / (count(now) - count(past))
	}
	since := func(now, past metric.Value) float64 { return (number(t, now) - number(t, past)) / seconds }
	return look{
		up:         1,
		firstToken: mean(x.TimeToFirstToken, before.TimeToFirstToken), between: mean(x.InterTokenLatency, before.InterTokenLatency),
		duration: mean(x.RequestDuration, before.RequestDuration),
		waiting:  number(t, x.RequestsWaiting), running: number(t, x.RequestsRunning), cache: number(t, x.KvCacheUtilization),
		tokens: since(x.GeneratedTokens, before.GeneratedTokens), ended: (ended(t, x) - ended(t, &before)) / seconds,
		failed:   since(x.RequestsFinished[telemetry.InferenceFinishReasonError], before.RequestsFinished[telemetry.InferenceFinishReasonError]),
		preempts: since(x.Preemptions, before.Preemptions),
	}
}

// Each trouble does what it is named for from when it begins until it ends; all is well without.
func TestTroublesOfEngines(t *testing.T) {
	for _, node := range []string{"h100x8", "l40sx1", "h100migx1"} {
		well := watch(t, node)
		if well.up == 0 || well.firstToken > 0.5 || well.duration > 15 || well.waiting > 5 || well.cache > 0.85 || well.failed > 0.01*well.ended {
			t.Errorf("%s: without any, %+v", node, well)
		}
		for name, holds := range map[string]func(x look) bool{
			"engine-slow": func(x look) bool {
				return x.between > 6*well.between && x.firstToken > 4 && x.duration > 40 && x.tokens < well.tokens/2
			},
			"engine-saturated": func(x look) bool {
				return x.waiting > 50 && x.running >= 64 && x.firstToken > 5 && x.tokens > well.tokens
			},
			"engine-long":   func(x look) bool { return x.cache > 0.9 && x.preempts > 0 && x.waiting > 0 },
			"engine-errors": func(x look) bool { return x.failed > 0.2*x.ended && x.firstToken < 2*well.firstToken },
			"engine-outage": func(x look) bool { return x.up == 0 },
		} {
			if x := watch(t, node+","+name+"@10m+15m"); !holds(x) {
				t.Errorf("%s: %s: %+v; well: %+v", node, name, x, well)
			}
			if x := watch(t, node+","+name+"@2m+4m"); x.up == 0 || x.firstToken > 2*well.firstToken || x.waiting > 5 {
				t.Errorf("%s: after %s: %+v; well: %+v", node, name, x, well)
			}
			if x := watch(t, node+","+name+"@20m"); x != well {
				t.Errorf("%s: before %s: %+v; well: %+v", node, name, x, well)
			}
		}
	}
}

// A process that comes back counts from zero, in the same pod.
func TestEngineComesBack(t *testing.T) {
	c, r, _ := startEngines(t, "h100x8,engine-outage@10m+1m", 1)
	c.moveTo(10 * time.Minute)
	before := engines(t, r)
	c.moveTo(11*time.Minute + 20*time.Second)
	after := engines(t, r)
	if len(before) != 1 || len(after) != 1 || before[0].Labels.Text() != after[0].Labels.Text() {
		t.Fatalf("before %+v, after %+v", before, after)
	}
	if was, now := ended(t, &before[0].Read.Inference), ended(t, &after[0].Read.Inference); now == 0 || now > was/5 {
		t.Errorf("%v requests have ended, before the outage %v", now, was)
	}
}

func TestFaultsByName(t *testing.T) {
	for text, want := range map[string]Faults{
		"": 0, ",\n": 0, "engine-slow": 1 << engineSlow, "Engine-Errors,engine-outage\nengine-errors\n": 1<<engineErrors | 1<<engineOutage,
	} {
		if got, err := ParseFaults(text); got != want || err != nil {
			t.Errorf("%q: %b, %v; want %b", text, got, err, want)
		}
	}
	got, err := ParseFaults("engine-slow engine-eror x")
	if err == nil || got != 1<<engineSlow || !strings.Contains(err.Error(), `no fault "engine-eror"; did you mean "engine-errors"?`) || !strings.Contains(err.Error(), `no fault "x"; faults are`) {
		t.Errorf("%b, %v; want the one that is right, and both mistakes", got, err)
	}
}

// What is asked for while a node runs holds from then until it is asked for no more, beside what the
// node's description asks for.
func TestFaultsAskedForMeanwhile(t *testing.T) {
	c := &clock{t: noon}
	var now Faults
	s, err := New(Config{Node: "h100x8,engine-errors@15m", Now: c.now, Faults: func() Faults { return now }})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := s.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r := opened.(source.EngineReader)
	c.moveTo(10 * time.Minute)
	early := only(t, r)
	now = 1<<engineSlow | 1<<engineLong
	c.moveTo(20 * time.Minute)
	x := only(t, r)
	if number(t, x.RequestsWaiting) < 50 || number(t, x.RequestsFinished[telemetry.InferenceFinishReasonError]) < 20 || number(t, early.RequestsWaiting) > 5 {
		t.Errorf("%v requests wait, then %v, and %v have failed", number(t, early.RequestsWaiting), number(t, x.RequestsWaiting), number(t, x.RequestsFinished[telemetry.InferenceFinishReasonError]))
	}
	now = 1 << engineOutage
	c.moveTo(21 * time.Minute)
	if n := len(engines(t, r)); n != 0 {
		t.Errorf("%d engines during an outage", n)
	}
	now = 0
	c.moveTo(22 * time.Minute)
	if x := only(t, r); number(t, x.RequestsWaiting) > 5 {
		t.Errorf("then %v requests wait", number(t, x.RequestsWaiting))
	}
}
