package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// startEngines opens a node whose driver was loaded at noon, and tells its tenants.
func startEngines(t testing.TB, node string, seed uint64) (*clock, source.EngineReader, *Tenants) {
	t.Helper()
	c, tenants := &clock{t: noon}, new(Tenants)
	s, err := New(Config{Node: node, Now: c.now, Seed: seed, Tenants: tenants})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c, r.(source.EngineReader), tenants
}

// engines reads those that answer.
func engines(t testing.TB, r source.EngineReader) (all []telemetry.Part[telemetry.Engine]) {
	t.Helper()
	for _, e := range r.Engines(context.Background()) {
		one := telemetry.Part[telemetry.Engine]{Labels: e.Labels()}
		if why := e.Read(context.Background(), &one.Read); why != nil {
			t.Fatal(why)
		}
		all = append(all, one)
	}
	return all
}

// only is the one engine of a node.
func only(t testing.TB, r source.EngineReader) *telemetry.Inference {
	t.Helper()
	all := engines(t, r)
	if len(all) != 1 {
		t.Fatalf("%d engines, want one", len(all))
	}
	return &all[0].Read.Inference
}

// count is how many observations a histogram has.
func count(h []telemetry.KeyedHistogram) (n float64) {
	for _, c := range h[0].Histogram.Counts {
		n += float64(c)
	}
	return n
}

// ended are the requests that ended, for any reason.
func ended(t *testing.T, x *telemetry.Inference) (n float64) {
	t.Helper()
	for i, v := range x.RequestsFinished {
		if i != int(telemetry.InferenceFinishReasonOther) {
			n += number(t, v)
		}
	}
	return n
}

// Engines run where jobs answer requests: on all boards of such a job, or on a partition.
func TestWhereEnginesRun(t *testing.T) {
	for node, want := range map[string][]string{
		"h100x1":        nil,
		"h100x4":        nil,
		"h100x8":        {"llama-70b"},
		"l40sx1":        {"llama-8b"},
		"l40sx5":        {"qwen-32b", "llama-8b"},
		"h100migx1":     {"llama-3b", "llama-3b"},
		"h100migx2":     {"llama-3b", "llama-3b", "llama-3b", "llama-3b"},
		"mixed":         {"llama-3b", "llama-3b", "llama-8b"},
		"mi300xx8":      {"llama-70b"},
		"rtx4090x8":     {"qwen-32b"},
		"h100x1,a100x1": nil,
	} {
		c, r, tenants := startEngines(t, node, 1)
		c.moveTo(10 * time.Minute)
		devices, err := r.(source.Reader).Devices(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range devices {
			read(t, d)
		}
		var got, pods, holders []string
		for _, e := range engines(t, r) {
			got = append(got, strings.TrimPrefix(e.Labels.Get("inference_model"), "simulated/"))
			pods = append(pods, fmt.Sprint(e.Labels.Get("k8s_namespace_name"), e.Labels.Get("k8s_pod_name"), e.Labels.Get("k8s_container_name"), e.Labels.Get("k8s_workload_kind"), e.Labels.Get("k8s_workload_name")))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: engines %v, want %v", node, got, want)
		}
		for _, h := range tenants.List() {
			if pod := fmt.Sprint(h.Namespace, h.Pod, h.Container, h.Kind, h.Name); h.Kind == "Deployment" && !slices.Contains(holders, pod) {
				holders = append(holders, pod)
			}
		}
		slices.Sort(pods)
		slices.Sort(holders)
		if !slices.Equal(pods, holders) {
			t.Errorf("%s: engines in %v; %v hold boards", node, pods, holders)
		}
	}
}

// An engine answers from when its model is loaded until its job ends, and is another pod's in the
// next cycle, which counts from zero.
func TestLifeOfAnEngine(t *testing.T) {
	c, r, _ := startEngines(t, "l40sx1", 1)
	pods := map[string]bool{}
	for _, at := range []struct {
		when time.Duration
		up   bool
	}{
		{0, false}, {4 * time.Second, false}, {10 * time.Second, true}, {time.Hour, true}, {(cycleTicks - restTicks) * time.Second, true},
		{(cycleTicks - restTicks + 1) * time.Second, false}, {cycleTicks * time.Second, false}, {(cycleTicks + 10) * time.Second, true},
		{2 * cycleTicks * time.Second, false}, {(100*cycleTicks + 10) * time.Second, true},
	} {
		c.moveTo(at.when)
		all := engines(t, r)
		if up := len(all) == 1; up != at.up {
			t.Fatalf("after %v it answers: %v, want %v", at.when, up, at.up)
		}
		if !at.up {
			continue
		}
		pods[all[0].Labels.Get("k8s_pod_name")] = true
		if n, young := ended(t, &all[0].Read.Inference), at.when%(cycleTicks*time.Second) < time.Minute; young != (n < 100) {
			t.Errorf("after %v %v requests have ended", at.when, n)
		}
	}
	if len(pods) != 3 {
		t.Errorf("pods %v, want one a cycle", pods)
	}
}

// troubled is a node whose engines have every trouble, some at once and the queue long.
const troubled = "h100x8,h100migx1,l40sx1,engine-slow@10m+10m,engine-saturated@15m+10m,engine-errors@30m+5m,engine-long@31m+15m,engine-outage@50m+2m"

// What must hold whenever anyone looks: nothing is lost and no counter falls, but for those of a
// process that is gone.
func TestRequestsAreConserved(t *testing.T) {
	c, r, _ := startEngines(t, troubled, 4)
	random := rand.New(rand.NewPCG(1, 1))
	before := map[string]float64{}
	full, preempted := 0, 0.
	for at := time.Duration(0); at < 90*time.Minute; at += time.Duration(random.Int64N(int64(40 * time.Second))) {
		c.moveTo(at)
		all := r.Engines(context.Background())
		if len(all) == 0 {
			clear(before) // of an engine that is down; it comes back as a new process
		}
		for _, e := range all {
			read := new(telemetry.Engine)
			if why := e.Read(context.Background(), read); why != nil {
				t.Fatal(why)
			}
			x, s := &read.Inference, e.(*replica).server
			get := func(v metric.Value) float64 { return number(t, v) }
			running, waiting, done := get(x.RequestsRunning), get(x.RequestsWaiting), ended(t, x)
			for _, c := range []struct {
				what      string
				got, want float64
			}{
				{"arrived", float64(s.arrived), done + running + waiting},
				{"durations", count(x.RequestDuration), done},
				{"queue latencies", count(x.QueueLatency), done},
				{"first tokens", count(x.TimeToFirstToken), float64(s.answers)},
				{"tokens between tokens", count(x.InterTokenLatency), get(x.GeneratedTokens) - count(x.TimeToFirstToken)},
			} {
				if c.got != c.want {
					t.Fatalf("after %v: %v %s, want %v", at, c.got, c.what, c.want)
				}
			}
			places := float64(s.model.places)
			if running > places || get(x.KvCacheUtilization) > 1 || get(x.PrefixCacheHits) > get(x.PrefixCacheQueries) {
				t.Fatalf("after %v: %v requests at %v places, %v of the cache, %v of %v found", at, running, places,
					get(x.KvCacheUtilization), get(x.PrefixCacheHits), get(x.PrefixCacheQueries))
			}
			if waiting > 2 && running < places && get(x.KvCacheUtilization) < 0.7 {
				t.Fatalf("after %v %v requests wait while %v are worked on, with %v of the cache", at, waiting, running, get(x.KvCacheUtilization))
			}
			if running == places {
				full++
			}
			preempted = max(preempted, get(x.Preemptions))
			rises(t, before, e.Labels().Text(), read, at)
		}
	}
	if full == 0 || preempted == 0 {
		t.Errorf("full %d times and %v preemptions; want some", full, preempted)
	}
}

// rises wants no counter to fall, and sums and buckets of histograms neither.
func rises(t *testing.T, before map[string]float64, who string, x *telemetry.Engine, at time.Duration) {
	t.Helper()
	check := func(key string, n float64) {
		if n < before[who+key] || math.IsNaN(n) || math.IsInf(n, 0) {
			t.Fatalf("after %v: %s fell from %v to %v", at, key, before[who+key], n)
		}
		before[who+key] = n
	}
	numbers(telemetry.EngineFamilies, nil, x, func(s series, n float64) {
		if s.desc.Kind == metric.KindCounter {
			check(s.String(), n)
		}
	})
	for _, f := range telemetry.EngineFamilies {
		if f.Histograms == nil {
			continue
		}
		h := (*f.Histograms(x))[0].Histogram
		check(f.Desc.Name+" sum", h.Sum)
		for i, n := range h.Counts {
			check(fmt.Sprint(f.Desc.Name, i), float64(n))
		}
	}
}

// Tokens are requests times their lengths, and latencies what the lengths make of the pace.
func TestTokensFollowRequests(t *testing.T) {
	c, r, _ := startEngines(t, "h100x8", 2)
	c.moveTo(3 * time.Hour)
	x := only(t, r)
	m := r.(*reader).engines[0].duty.plan.model
	answers := count(x.TimeToFirstToken)
	for what, c := range map[string]struct{ got, low, high float64 }{
		"tokens of a prompt":     {number(t, x.PromptTokens) / answers, m.prompt, 1.5 * m.prompt},
		"tokens of an answer":    {number(t, x.GeneratedTokens) / answers, m.answer, 1.5 * m.answer},
		"found of a prompt":      {number(t, x.PrefixCacheHits) / number(t, x.PrefixCacheQueries), 0.25, 0.4},
		"pace":                   {x.InterTokenLatency[0].Histogram.Sum / count(x.InterTokenLatency), m.pace, m.pace + m.drag*float64(m.places)},
		"time to a first token":  {x.TimeToFirstToken[0].Histogram.Sum / answers, 0.05, 0.5},
		"time of a request":      {x.RequestDuration[0].Histogram.Sum / ended(t, x), m.answer * m.pace, 2 * m.answer * (m.pace + m.drag*float64(m.places))},
		"requests a second":      {ended(t, x) / (3 * time.Hour).Seconds(), 0.2 * m.speed(), 0.9 * m.speed()},
		"of them without a mend": {(number(t, x.RequestsFinished[telemetry.InferenceFinishReasonError]) + number(t, x.RequestsFinished[telemetry.InferenceFinishReasonAbort])) / ended(t, x), 0.001, 0.03},
		"of them cut off":        {number(t, x.RequestsFinished[telemetry.InferenceFinishReasonLength]) / ended(t, x), 0.01, 0.15},
	} {
		if c.got < c.low || c.got > c.high {
			t.Errorf("%s: %v, want %v to %v", what, c.got, c.low, c.high)
		}
	}
	// Little's law: those worked on are those that come in a second, times how long they take.
	var running, samples float64
	from, took := ended(t, x), x.RequestDuration[0].Histogram.Sum
	for at := 3 * time.Hour; at < 4*time.Hour; at += time.Second {
		c.moveTo(at)
		x = only(t, r)
		running += number(t, x.RequestsRunning) + number(t, x.RequestsWaiting)
		samples++
	}
	took = (x.RequestDuration[0].Histogram.Sum - took) / (ended(t, x) - from)
	if law := (ended(t, x) - from) / samples * took; math.Abs(running/samples-law) > 0.05*law {
		t.Errorf("%v requests in flight, by their rate and duration %v", running/samples, law)
	}
}

// Readers that looked at different times see the same, and what one has seen stays.
func TestLookingAtEnginesChangesNothing(t *testing.T) {
	const node = "h100x8,l40sx1,engine-long@20m+15m,engine-outage@50m+2m"
	often, a, _ := startEngines(t, node, 5)
	seldom, b, _ := startEngines(t, node, 5)
	var kept, copied []telemetry.Part[telemetry.Engine]
	for at := time.Duration(0); at < 7*time.Hour; at += 61*time.Second + 1234567*time.Microsecond {
		often.moveTo(at)
		x := engines(t, a)
		if at/time.Minute%47 != 3 {
			continue
		}
		seldom.moveTo(at)
		if y := engines(t, b); !reflect.DeepEqual(x, y) {
			t.Fatalf("after %v the one who looked often sees\n%+v\nthe other\n%+v", at, x, y)
		}
		if !reflect.DeepEqual(kept, copied) {
			t.Fatalf("what was read before %v has changed", at)
		}
		kept, copied = x, slices.Clone(x)
		for i := range copied {
			h := &copied[i].Read.Inference.RequestDuration
			*h = []telemetry.KeyedHistogram{{Histogram: (*h)[0].Histogram.Clone()}}
		}
	}
	other, c, _ := startEngines(t, node, 6)
	other.moveTo(time.Hour)
	again, d, _ := startEngines(t, node, 5)
	again.moveTo(time.Hour)
	if reflect.DeepEqual(engines(t, c), engines(t, d)) {
		t.Error("two seeds made the same engines")
	}
}

// An engine looked at every 15 s, as Prometheus does.
func BenchmarkEngines(b *testing.B) {
	for _, node := range []string{"h100x8", "h100x8,engine-saturated"} {
		b.Run(node, func(b *testing.B) {
			c, r, _ := startEngines(b, node, 1)
			at := 10 * time.Minute
			b.ReportAllocs()
			for b.Loop() {
				at += 15 * time.Second
				c.moveTo(at)
				engines(b, r)
			}
		})
	}
}
