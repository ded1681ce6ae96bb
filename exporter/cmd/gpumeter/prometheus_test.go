package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/expose/prom"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// prometheus keeps what is scraped, marks what is gone as Prometheus does, and answers PromQL with
// Prometheus' own engine.
type prometheus struct {
	*testing.T
	series  []*series
	found   map[string]map[string]*series // by target, by the text of their labels
	symbols *labels.SymbolTable
	engine  *promql.Engine
	page    bytes.Buffer
	encoder *prom.Encoder
	there   map[string][]*series // by target, in the last scrape
}

type series struct {
	labels  labels.Labels
	samples samples
	seen    int64 // when it was last on a page, ms
}

// samples are those of a series, in the order of time.
type samples []sample

func (s samples) Get(i int) chunks.Sample { return s[i] }
func (s samples) Len() int                { return len(s) }

// sample is one number at one time, ms.
type sample struct {
	at int64
	n  float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.n }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// newPrometheus scrapes the groups of metrics that are asked for.
func newPrometheus(t *testing.T, groups ...string) *prometheus {
	all := expose.NewFamilies(func(d *metric.Desc) bool { return slices.Contains(groups, d.Group) })
	return &prometheus{
		T: t, symbols: labels.NewSymbolTable(), encoder: prom.NewEncoder(all, prom.Text),
		found: map[string]map[string]*series{}, there: map[string][]*series{},
		engine: promql.NewEngine(promql.EngineOpts{
			MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
		}),
	}
}

// scrape takes in the page of a picture, and returns how many series it had.
func (p *prometheus) scrape(target string, at time.Time, s *snapshot.Snapshot) int {
	p.Helper()
	p.page.Reset()
	if err := p.encoder.Encode(&p.page, s); err != nil {
		p.Fatal(err)
	}
	found := p.found[target]
	if found == nil {
		found = map[string]*series{}
		p.found[target] = found
	}
	ms := at.UnixMilli()
	var now []*series
	lines := textparse.NewPromParser(p.page.Bytes(), p.symbols, false)
	for {
		entry, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			p.Fatal(err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		name, _, n := lines.Series()
		x := found[string(name)]
		if x == nil {
			var l labels.Labels
			lines.Labels(&l)
			b := labels.NewBuilder(l)
			b.Set("instance", target)
			x = &series{labels: b.Labels()}
			found[string(name)] = x
			p.series = append(p.series, x)
		}
		if x.seen == ms {
			p.Fatalf("%s is on the page twice", name)
		}
		x.seen = ms
		x.samples = append(x.samples, sample{ms, n})
		now = append(now, x)
	}
	for _, x := range p.there[target] {
		if x.seen != ms {
			x.samples = append(x.samples, sample{ms, math.Float64frombits(value.StaleNaN)})
		}
	}
	p.there[target] = now
	return len(now)
}

// query evaluates at one time.
func (p *prometheus) query(at time.Time, text string) promql.Vector {
	p.Helper()
	q, err := p.engine.NewInstantQuery(context.Background(), &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: p.find}}, nil, text, at)
	if err != nil {
		p.Fatalf("%s: %v", text, err)
	}
	defer q.Close()
	r := q.Exec(context.Background())
	v, err := r.Vector()
	if err != nil {
		p.Fatalf("%s: %v", text, err)
	}
	return slices.Clone(v)
}

func (p *prometheus) find(sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
next:
	for _, x := range p.series {
		for _, m := range matchers {
			if !m.Matches(x.labels.Get(m.Name)) {
				continue next
			}
		}
		from, _ := slices.BinarySearchFunc(x.samples, hints.Start, func(s sample, at int64) int { return cmp.Compare(s.at, at) })
		to, _ := slices.BinarySearchFunc(x.samples, hints.End+1, func(s sample, at int64) int { return cmp.Compare(s.at, at) })
		if within := x.samples[from:to]; len(within) > 0 {
			found = append(found, &storage.SeriesEntry{Lset: x.labels, SampleIteratorFn: func(chunkenc.Iterator) chunkenc.Iterator {
				return storage.NewListSeriesIterator(within)
			}})
		}
	}
	if sorted {
		slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	}
	return &foundSeries{all: found}
}

// foundSeries are handed to the engine one by one.
type foundSeries struct {
	all []storage.Series
	at  int
}

func (f *foundSeries) Next() bool                        { f.at++; return f.at <= len(f.all) }
func (f *foundSeries) At() storage.Series                { return f.all[f.at-1] }
func (f *foundSeries) Err() error                        { return nil }
func (f *foundSeries) Warnings() annotations.Annotations { return nil }
