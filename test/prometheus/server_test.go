package prometheus

import (
	"context"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/tsdb"
)

// interval is how often rules are evaluated and targets scraped.
const interval = 30 * time.Second

// origin is when simulated time begins.
var origin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// server is a Prometheus without its web server, its scrapes and its clock.
type server struct {
	testing.TB
	db     *tsdb.DB
	engine *promql.Engine
	groups []*rules.Group
}

// newServer loads files of rules into a new database's rule manager.
func newServer(t testing.TB, files ...string) *server {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	options := tsdb.DefaultOptions()
	options.MinBlockDuration = (24 * time.Hour).Milliseconds() // all stays in memory, as the last two hours do
	options.MaxBlockDuration = options.MinBlockDuration
	db, err := tsdb.Open(t.TempDir(), quiet, nil, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() }) //nolint:errcheck // it is thrown away
	reader := parser.NewParser(parser.Options{})
	s := &server{TB: t, db: db, engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: 2 * time.Minute, LookbackDelta: 5 * time.Minute, Parser: reader, // as shipped
	})}
	manager := rules.NewManager(&rules.ManagerOptions{
		NameValidationScheme: model.UTF8Validation, ExternalURL: &url.URL{}, Context: context.Background(),
		QueryFunc:  rules.EngineQueryFunc(s.engine, db),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Appendable: db, Queryable: db, Logger: quiet, Parser: reader,
	})
	for _, file := range files {
		matches, err := filepath.Glob(file)
		if err != nil || matches == nil {
			t.Fatalf("%s: no files, %v", file, err)
		}
		for _, match := range matches {
			loaded, faults := manager.LoadGroups(interval, labels.EmptyLabels(), "", nil, false, match)
			for _, fault := range faults {
				t.Errorf("%s: %v", match, fault)
			}
			for _, key := range slices.Sorted(maps.Keys(loaded)) {
				for _, rule := range loaded[key].AlertingRules() {
					rule.SetRestored(true) // there is no earlier run to learn from
				}
				s.groups = append(s.groups, loaded[key])
			}
		}
	}
	return s
}

// evaluate has all groups evaluated once, and says which rule fails.
func (s *server) evaluate(at time.Time) {
	for _, group := range s.groups {
		group.Eval(s.Context(), at)
		for _, rule := range group.Rules() {
			if err := rule.LastError(); err != nil {
				s.Errorf("%s at %s: %v", rule.Name(), at.Sub(origin), err)
			}
		}
	}
}

// query asks for an instant.
func (s *server) query(at time.Time, expr string) promql.Vector {
	s.Helper()
	query, err := s.engine.NewInstantQuery(s.Context(), s.db, nil, expr, at)
	if err != nil {
		s.Fatalf("%s: %v", expr, err)
	}
	defer query.Close()
	result := query.Exec(s.Context())
	if result.Err != nil {
		s.Fatalf("%s: %v", expr, result.Err)
	}
	vector, err := result.Vector()
	if err != nil {
		s.Fatalf("%s: %v", expr, err)
	}
	return append(promql.Vector(nil), vector...)
}
