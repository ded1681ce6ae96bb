package prometheus

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"go.yaml.in/yaml/v3"
)

// board is a dashboard, as far as it asks Prometheus.
type board struct {
	name   string
	series int // the most series a query may read; 0: 5000, with all variables set
	panels []asking
	values []string // the queries of its variables
}

// asking is a panel's queries.
type asking struct {
	title, empty string // what it says when there is nothing
	exprs        []string
}

// boards reads the dashboards.
func boards(t testing.TB) []board {
	t.Helper()
	files, err := filepath.Glob("../../dashboards/*.json")
	if err != nil || files == nil {
		t.Fatalf("no dashboards: %v", err)
	}
	var out []board
	for _, file := range files {
		b := board{name: strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "gpumeter-"), ".json")}
		var written struct {
			Series int `yaml:"series"`
		}
		read(t, "../../spec/dashboards/"+b.name+".yaml", yaml.Unmarshal, &written)
		b.series = written.Series
		type panel struct {
			Title   string
			Targets []struct{ Expr string }
			Panels  []json.RawMessage
			Field   struct {
				Defaults struct{ NoValue string }
			} `json:"fieldConfig"`
		}
		var shown struct {
			Panels      []panel
			Annotations struct{ List []struct{ Name, Expr string } }
			Templating  struct {
				List []struct{ Type, Definition string }
			}
		}
		read(t, file, json.Unmarshal, &shown)
		for _, p := range shown.Panels {
			for _, inner := range p.Panels {
				var in panel
				if err := json.Unmarshal(inner, &in); err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				shown.Panels = append(shown.Panels, in)
			}
		}
		for _, p := range shown.Panels {
			a := asking{title: p.Title, empty: p.Field.Defaults.NoValue}
			for _, q := range p.Targets {
				a.exprs = append(a.exprs, q.Expr)
			}
			b.panels = append(b.panels, a)
		}
		for _, a := range shown.Annotations.List {
			if a.Expr != "" {
				b.panels = append(b.panels, asking{title: a.Name, empty: "nothing happened", exprs: []string{a.Expr}})
			}
		}
		for _, v := range shown.Templating.List {
			if v.Type == "query" {
				b.values = append(b.values, v.Definition)
			}
		}
		out = append(out, b)
	}
	return out
}

func read(t testing.TB, file string, decode func([]byte, any) error, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = decode(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

var (
	variable = regexp.MustCompile(`\$[a-z]+`)
	typed    = regexp.MustCompile(`\$\{[a-z]+\}`) // a number
)

// chosen is an expression with Grafana's ranges put in, and what is chosen: everything, but for the names
// of variables in only.
func chosen(expr, span string, only map[string]string) string {
	expr = strings.NewReplacer("$__range", span, "$__rate_interval", "2m").Replace(expr)
	expr = typed.ReplaceAllString(expr, "2")
	return variable.ReplaceAllStringFunc(expr, func(name string) string {
		if value, ok := only[strings.TrimPrefix(name, "$")]; ok {
			return value
		}
		return ".*"
	})
}

// asked are the names of the series that dashboards ask for.
func asked(t testing.TB) []string {
	t.Helper()
	var names []string
	for _, b := range boards(t) {
		for _, p := range b.panels {
			for _, expr := range p.exprs {
				e, err := parser.NewParser(parser.Options{}).ParseExpr(chosen(expr, "1h", nil))
				if err != nil {
					t.Fatalf("%s: %s: %v: %s", b.name, p.title, err, expr)
				}
				parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
					if v, ok := n.(*parser.VectorSelector); ok {
						names = append(names, v.Name)
					}
					return nil
				})
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// history is how long the simulated cluster has been there.
const history = time.Hour

// On a simulated cluster dashboards have data, and their numbers are the simulator's.
func TestDashboards(t *testing.T) {
	t.Parallel()
	kinds := []string{"h100x8,slurm", "h100migx1", "mixed"}
	machines := make([]machine, len(kinds)+1)
	t.Run("nodes", func(t *testing.T) { // all at once, since what they do takes time
		for i, what := range kinds {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				machines[i] = work(t, what)
			})
		}
		t.Run("struck", func(t *testing.T) {
			t.Parallel()
			machines[len(kinds)] = strike(t)
		})
	})
	if t.Failed() {
		return // there is nothing to look at
	}
	machines[0] = unasked(t, machines[0])
	s := newServer(t, "../../rules/plain/*.yaml")
	end := s.fill(func(string) time.Duration { return history }, history, machines...)
	for at := origin.Add(time.Second); !at.After(end); at = at.Add(interval) {
		s.evaluate(at)
	}
	t.Run("panels", func(t *testing.T) { s.checkPanels(t, end) })
	t.Run("questions", func(t *testing.T) { s.checkQuestions(t, end, machines) })
}

// work starts a node, and waits until all that can happen on it has begun.
func work(t *testing.T, what string) machine {
	t.Helper()
	wait := []string{`(?m)^gpu_usage_energy_joules_total\{`, `(?m)^gpu_workload_busy_time_seconds_total\{.*\} [1-9]`}
	if what == "h100x8,slurm" {
		wait = append(wait, `(?m)^gpu_usage_allocated_time_seconds_total\{.*slurm_account="[^"]+".*\} [1-9]`)
	}
	if what != "h100migx1" {
		wait = append(wait, `(?m)^inference_prefix_cache_hits_total\{.*\} [1-9]`)
	}
	pages := simulate(t, what).pages(wait...)
	pages.count = 2
	return pages
}

// checkPanels wants each query of each panel to answer with data, or the panel to say why it need not; and
// each variable to have something to choose.
func (s *server) checkPanels(t *testing.T, end time.Time) {
	for _, b := range boards(t) {
		for _, p := range b.panels {
			for _, expr := range p.exprs {
				if got := s.query(end, chosen(expr, "30m", nil)); len(got) == 0 && p.empty == "" {
					t.Errorf("%s: %s: no data, and does not say why: %s", b.name, p.title, expr)
				}
			}
		}
		for _, values := range b.values {
			series, label, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(values, "label_values("), ")"), ", ")
			if got := s.query(end, "group by ("+label+") ("+chosen(series, "30m", nil)+")"); len(got) == 0 || got[0].Metric.Get(label) == "" {
				t.Errorf("%s: nothing to choose: %s", b.name, values)
			}
		}
	}
}

// reads counts the series that each query of each dashboard reads, of which there may be as many as the
// dashboard says, with everything chosen; else five thousand with one of each chosen.
func (s *server) reads(t testing.TB, now time.Time) {
	holder, engine := s.one(now, "gpu_owner_info"), s.one(now, "inference_requests_running")
	for _, b := range boards(t) {
		limit, only := b.series, map[string]string(nil)
		if limit == 0 {
			if limit, only = 5000, holder; b.name == "inference" {
				only = engine
			}
		}
		most := 0
		for _, p := range b.panels {
			for _, expr := range p.exprs {
				count := &counted{Queryable: s.db}
				query, err := s.engine.NewInstantQuery(s.Context(), count, nil, chosen(expr, "5m", only), now)
				if err != nil {
					t.Fatalf("%s: %v", expr, err)
				}
				if result := query.Exec(s.Context()); result.Err != nil {
					t.Errorf("%s: %v", expr, result.Err)
				}
				query.Close()
				if most = max(most, count.series); count.series > limit {
					t.Errorf("%s: %s: reads %d series, and may %d: %s", b.name, p.title, count.series, limit, expr)
				}
			}
		}
		t.Logf("%s: at most %d series a query, of %d", b.name, most, limit)
	}
}

// one chooses what one series of the seventh machine is of.
func (s *server) one(now time.Time, series string) map[string]string {
	s.Helper()
	got := s.query(now, series+`{instance="node-0-7",k8s_pod_name!=""}`)
	if len(got) == 0 {
		s.Fatalf("%s: nothing of a pod", series)
	}
	out := map[string]string{"node": "node-0-7", "cluster": "prod"}
	for name, label := range map[string]string{
		"namespace": "k8s_namespace_name", "workload": "k8s_workload_name", "pod": "k8s_pod_name", "gpu": "gpu_uuid", "model": "inference_model",
	} {
		if value := got[0].Metric.Get(label); value != "" {
			out[name] = value
		}
	}
	return out
}

// counted counts the series that are read.
type counted struct {
	storage.Queryable
	series int
}

func (c *counted) Querier(from, to int64) (storage.Querier, error) {
	q, err := c.Queryable.Querier(from, to)
	return &countedQuerier{q, c}, err
}

type countedQuerier struct {
	storage.Querier
	*counted
}

func (q *countedQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	return &countedSet{q.Querier.Select(ctx, sorted, hints, matchers...), q.counted}
}

type countedSet struct {
	storage.SeriesSet
	*counted
}

func (s *countedSet) Next() bool {
	more := s.SeriesSet.Next()
	if more {
		s.series++
	}
	return more
}
