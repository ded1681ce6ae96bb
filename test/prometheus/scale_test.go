package prometheus

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
)

// fleet is how many nodes of eight devices there are.
const fleet = 1250

// BenchmarkFleet has 10,000 simulated GPUs, whose series are in a real database. It evaluates all alerts
// and recording rules once, prints what each costs, and counts what each query of each dashboard reads.
func BenchmarkFleet(b *testing.B) {
	node := simulate(b, "h100x8")
	pages := node.pages(`(?m)^inference_prefix_cache_hits_total\{.*\} [1-9]`)
	pages.count = fleet
	s := newServer(b, "../../rules/plain/*.yaml")
	used := s.used()
	for _, name := range asked(b) { // by dashboards
		used[name] = max(used[name], 5*time.Minute)
	}
	now := s.fill(func(name string) time.Duration { return used[name] }, slices.Max(slices.Collect(maps.Values(used))), pages)
	b.Logf("%d GPUs, %d series", 8*fleet, s.db.Head().NumSeries())
	for range 2 { // what one rule records another reads
		s.evaluate(now)
		now = now.Add(interval)
	}
	b.Run("rules", func(b *testing.B) {
		for b.Loop() {
			before := cpu()
			s.evaluate(now)
			b.ReportMetric((cpu() - before).Seconds(), "cpu-s/op")
			now = now.Add(interval)
		}
		b.ReportMetric(float64(s.costs(now)), "samples-at-once")
	})
	b.Run("panels", func(b *testing.B) {
		for b.Loop() {
			s.reads(b, now)
		}
	})
}

// used are the names of the series the rules read, and how far back.
func (s *server) used() map[string]time.Duration {
	names := map[string]time.Duration{}
	for _, group := range s.groups {
		for _, rule := range group.Rules() {
			parser.Inspect(rule.Query(), func(n parser.Node, path []parser.Node) error {
				v, ok := n.(*parser.VectorSelector)
				if !ok {
					return nil
				}
				back := 5 * time.Minute // for the newest line
				for _, up := range path {
					switch up := up.(type) {
					case *parser.MatrixSelector:
						back += up.Range
					case *parser.SubqueryExpr:
						back += up.Range
					}
				}
				names[v.Name] = max(names[v.Name], back)
				return nil
			})
		}
	}
	return names
}

// machine is a node of which there are two pages, and as many like it: each goes on as from one page to the
// other, with devices, pods and workloads of its own.
type machine struct {
	first, second string
	apart         time.Duration
	count         int
}

// fill writes what there would be of the machines as far back as it is read, and says when the last scrape
// was.
func (s *server) fill(back func(metric string) time.Duration, history time.Duration, machines ...machine) time.Time {
	s.Helper()
	var all []trace
	for i, m := range machines {
		all = append(all, s.traces(back, m, i)...)
	}
	refs := make([]storage.SeriesRef, len(all))
	end := origin.Add(history)
	for at := origin; !at.After(end); at = at.Add(interval) {
		appender := s.db.Appender(s.Context())
		for i, t := range all {
			if end.Sub(at) > t.back {
				continue
			}
			var series labels.Labels
			if refs[i] == 0 {
				series = t.own()
			}
			var err error
			if refs[i], err = appender.Append(refs[i], series, at.UnixMilli(), t.from+at.Sub(origin).Seconds()*t.step); err != nil {
				s.Fatalf("%s: %v", t.own(), err)
			}
		}
		if err := appender.Commit(); err != nil {
			s.Fatal(err)
		}
	}
	return end.Add(time.Second)
}

// trace is one series of one machine.
type trace struct {
	*line
	node       string
	number     int
	from, step float64 // what it is first, and becomes more each second
	back       time.Duration
}

// own are its labels, in which the machine's things are told from those of others like it.
func (t trace) own() labels.Labels {
	builder := labels.NewBuilder(t.labels)
	builder.Set("job", "gpumeter").Set("instance", t.node).Set("cluster", "prod")
	for _, name := range []string{"gpu_uuid", "gpu_partition_uuid", "k8s_pod_name", "k8s_workload_name"} {
		if value := t.labels.Get(name); value != "" {
			builder.Set(name, fmt.Sprintf("%s-%d", value, t.number))
		}
	}
	if value := t.labels.Get("k8s_namespace_name"); value != "" {
		builder.Set("k8s_namespace_name", fmt.Sprintf("%s-%d", value, t.number%100))
	}
	return builder.Labels()
}

// traces are those of all machines like one.
func (s *server) traces(back func(metric string) time.Duration, m machine, kind int) []trace {
	s.Helper()
	begin := map[string]float64{}
	for _, t := range series(s, m.first) {
		begin[t.labels.String()] = t.number
	}
	var out []trace
	up := line{labels.FromStrings(model.MetricNameLabel, "up"), 1} // Prometheus' own
	begin[up.labels.String()] = 1
	for _, t := range append(series(s, m.second), up) {
		from, both := begin[t.labels.String()]
		far := back(t.labels.Get(model.MetricNameLabel))
		if !both || far == 0 {
			continue
		}
		for i := range m.count {
			out = append(out, trace{line: &t, node: fmt.Sprintf("node-%d-%d", kind, i), number: i, from: from, step: (t.number - from) / m.apart.Seconds(), back: far})
		}
	}
	return out
}

// costs prints the rules, the dearest first, and says how many samples one of them has in memory at once at
// the most: a query that had more than --query.max-samples, by default 50 million, would fail.
func (s *server) costs(now time.Time) (most int) {
	var all []rules.Rule
	for _, group := range s.groups {
		all = append(all, group.Rules()...)
	}
	slices.SortFunc(all, func(a, b rules.Rule) int { return cmp.Compare(b.GetEvaluationDuration(), a.GetEvaluationDuration()) })
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, rule := range all {
		query, err := s.engine.NewInstantQuery(s.Context(), s.db, nil, rule.Query().String(), now)
		if err != nil {
			s.Fatalf("%s: %v", rule.Name(), err)
		}
		query.Exec(s.Context())
		peak := query.Stats().Samples.PeakSamples
		query.Close()
		most = max(most, peak)
		fmt.Fprintf(w, "%s\t%s\t%d samples\n", rule.Name(), rule.GetEvaluationDuration().Round(time.Millisecond), peak)
	}
	w.Flush()                                                     //nolint:errcheck // into memory
	fmt.Printf("each rule, in time on this machine:\n%s", &table) // a benchmark's log is cut short
	return most
}

// cpu is what this process has used.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
