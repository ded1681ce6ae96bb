package prometheus

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
)

// fleet is how many nodes of eight devices there are.
const fleet = 1250

// BenchmarkRules evaluates all alerts and recording rules once over 10,000 simulated GPUs, whose series
// are in a real database, and prints what each rule costs.
func BenchmarkRules(b *testing.B) {
	node := simulate(b, "h100x8")
	first := node.busy(`(?m)^inference_prefix_cache_hits_total\{.*\} [1-9]`, `(?m)^gpu_usage_energy_joules_total\{.*gpu_workload_type="kubernetes"`)
	second := node.busy(`(?m)^inference_requests_running\{.*\} [1-9]`)
	for second == first {
		second = node.page()
	}
	s := newServer(b, "../../rules/plain/*.yaml")
	now := s.fill(s.used(), first, second)
	b.Logf("%d GPUs, %d series", 8*fleet, s.db.Head().NumSeries())
	for range 2 { // what one rule records another reads
		s.evaluate(now)
		now = now.Add(interval)
	}
	for b.Loop() {
		heap := heapInUse()
		before := cpu()
		s.evaluate(now)
		b.ReportMetric((cpu() - before).Seconds(), "cpu-s/op")
		b.ReportMetric(float64(heapInUse()-heap)/(1<<20), "MiB-more/op")
		now = now.Add(interval)
	}
	s.costs()
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

// fill writes what there would be of the whole fleet as far back as it is read, and says when the last
// scrape was. Each node is as the one of
// which there are two pages and goes on as from one to the other, with devices, pods and workloads of its own.
func (s *server) fill(used map[string]time.Duration, first, second string) time.Time {
	s.Helper()
	begin, later := map[string]float64{}, s.series(second)
	for _, t := range s.series(first) {
		begin[t.labels.String()] = t.number
	}
	later = slices.DeleteFunc(later, func(t line) bool {
		_, both := begin[t.labels.String()]
		return !both || used[t.labels.Get(labels.MetricName)] == 0
	})
	refs := make([]storage.SeriesRef, fleet*len(later))
	builder := labels.NewBuilder(labels.EmptyLabels())
	own := func(t line, node int) labels.Labels {
		builder.Reset(t.labels)
		builder.Set("job", "gpumeter").Set("instance", fmt.Sprintf("node-%d", node)).Set("cluster", "prod")
		for _, name := range []string{"gpu_uuid", "k8s_pod_name", "k8s_workload_name"} {
			if value := t.labels.Get(name); value != "" {
				builder.Set(name, fmt.Sprintf("%s-%d", value, node))
			}
		}
		if value := t.labels.Get("k8s_namespace_name"); value != "" {
			builder.Set("k8s_namespace_name", fmt.Sprintf("%s-%d", value, node%100))
		}
		return builder.Labels()
	}
	history := slices.Max(slices.Collect(maps.Values(used)))
	end := origin.Add(history)
	for at := origin; !at.After(end); at = at.Add(interval) {
		appender := s.db.Appender(s.Context())
		for node := range fleet {
			for i, t := range later {
				if end.Sub(at) > used[t.labels.Get(labels.MetricName)] {
					continue
				}
				ref := &refs[node*len(later)+i]
				series := labels.EmptyLabels()
				if *ref == 0 {
					series = own(t, node)
				}
				from := begin[t.labels.String()]
				var err error
				if *ref, err = appender.Append(*ref, series, at.UnixMilli(), from+at.Sub(origin).Seconds()*(t.number-from)); err != nil {
					s.Fatalf("%s: %v", t.labels, err)
				}
			}
		}
		if err := appender.Commit(); err != nil {
			s.Fatal(err)
		}
	}
	return end.Add(time.Second)
}

// costs prints the rules, the dearest first.
func (s *server) costs() {
	var all []rules.Rule
	for _, group := range s.groups {
		all = append(all, group.Rules()...)
	}
	slices.SortFunc(all, func(a, b rules.Rule) int { return cmp.Compare(b.GetEvaluationDuration(), a.GetEvaluationDuration()) })
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, rule := range all {
		fmt.Fprintf(w, "%s\t%s\n", rule.Name(), rule.GetEvaluationDuration().Round(time.Millisecond)) //nolint:errcheck // into memory
	}
	w.Flush()                                                     //nolint:errcheck // into memory
	fmt.Printf("each rule, in time on this machine:\n%s", &table) // a benchmark's log is cut short
}

// cpu is what this process has used.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func heapInUse() uint64 {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.HeapInuse
}
