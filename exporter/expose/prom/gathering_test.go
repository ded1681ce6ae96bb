package prom

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// gathering is a snapshot in client_golang's data model, the reference of the streamed pages. It is
// kept warm: a scrape writes new values into the messages of the last one, and label pairs are made
// once per label set.
type gathering struct {
	families *expose.Families
	made     []*dto.MetricFamily // by family index
	boxes    [][]*box            // by family index, those in use first
	pairs    map[*metric.Labels][]*dto.LabelPair

	out []*dto.MetricFamily
	at  int
}

// box is one series' messages, made together.
type box struct {
	metric    dto.Metric
	gauge     dto.Gauge
	counter   dto.Counter
	histogram dto.Histogram
	number    float64
}

func newGathering(families *expose.Families) *gathering {
	g := &gathering{families: families, boxes: make([][]*box, len(families.Descs)), pairs: map[*metric.Labels][]*dto.LabelPair{}}
	for _, d := range families.Descs {
		m := &dto.MetricFamily{Name: proto.String(d.Prom), Help: proto.String(d.Help), Type: typeOf(d.Kind).Enum()}
		if d.PromUnit != "" {
			m.Unit = proto.String(d.PromUnit)
		}
		g.made = append(g.made, m)
	}
	return g
}

func typeOf(k metric.Kind) dto.MetricType {
	switch k {
	case metric.KindCounter:
		return dto.MetricType_COUNTER
	case metric.KindHistogram:
		return dto.MetricType_HISTOGRAM
	}
	return dto.MetricType_GAUGE
}

// take fills the messages from a snapshot.
func (g *gathering) take(s *snapshot.Snapshot) []*dto.MetricFamily {
	g.out = g.out[:0]
	g.families.Walk(s, g)
	return g.out
}

// Family begins a metric.
func (g *gathering) Family(i int) {
	g.at = i
	g.made[i].Metric = g.made[i].Metric[:0]
	g.out = append(g.out, g.made[i])
}

// next returns the box of the family's next series, with its labels in the order of the text.
func (g *gathering) next(at expose.Labels) *box {
	family := g.made[g.at]
	n := len(family.Metric)
	if n == len(g.boxes[g.at]) {
		g.boxes[g.at] = append(g.boxes[g.at], new(box))
	}
	b := g.boxes[g.at][n]
	b.metric.Label = append(b.metric.Label[:0], g.labels(at.Thing)...)
	b.metric.Label = append(b.metric.Label, g.labels(at.Part)...)
	b.metric.Label = append(b.metric.Label, g.labels(at.Row)...)
	family.Metric = append(family.Metric, &b.metric)
	return b
}

func (g *gathering) labels(l *metric.Labels) []*dto.LabelPair {
	if l == nil {
		return nil
	}
	pairs, ok := g.pairs[l]
	if !ok {
		for _, p := range l.Pairs() {
			pairs = append(pairs, &dto.LabelPair{Name: proto.String(p.Name), Value: proto.String(p.Value)})
		}
		g.pairs[l] = pairs
	}
	return pairs
}

// Value adds a gauge or a counter.
func (g *gathering) Value(at expose.Labels, n float64) {
	b := g.next(at)
	b.number = n
	if g.made[g.at].GetType() == dto.MetricType_COUNTER {
		b.counter.Value = &b.number
		b.metric.Counter = &b.counter
	} else {
		b.gauge.Value = &b.number
		b.metric.Gauge = &b.gauge
	}
}

// Histogram adds a histogram.
func (g *gathering) Histogram(at expose.Labels, h *metric.Histogram) {
	b := g.next(at)
	b.number = h.Sum
	b.histogram.SampleSum = &b.number
	b.histogram.Bucket = b.histogram.Bucket[:0]
	var total uint64
	for i, n := range h.Counts {
		total += n
		if i < len(h.Bounds) {
			b.histogram.Bucket = append(b.histogram.Bucket, &dto.Bucket{CumulativeCount: proto.Uint64(total), UpperBound: &h.Bounds[i]})
		}
	}
	b.histogram.SampleCount = proto.Uint64(total)
	b.metric.Histogram = &b.histogram
}

// Gather implements prometheus.TransactionalGatherer.
func (g gathered) Gather() ([]*dto.MetricFamily, func(), error) {
	families := g.gathering.take(g.snapshot)
	if g.process != nil {
		g.process.mu.Lock()
		g.process.refresh()
		families = append(families, g.process.families...)
		g.process.mu.Unlock()
	}
	return families, func() {}, nil
}

// gathered is a snapshot as a gatherer.
type gathered struct {
	gathering *gathering
	snapshot  *snapshot.Snapshot
	process   *Process
}

// reference serves a snapshot through client_golang. It is not safe for concurrent use.
func reference(families *expose.Families, s *snapshot.Snapshot, process *Process) http.Handler {
	return promhttp.HandlerForTransactional(gathered{newGathering(families), s, process}, promhttp.HandlerOpts{EnableOpenMetrics: true})
}
