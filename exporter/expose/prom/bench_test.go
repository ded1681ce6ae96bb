package prom

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// Every value is changed before each page. The processor time of the whole process is what
// counts (the garbage collector's too), so that a busy machine does not blur the ratios.

// sizes are numbers of series.
var sizes = []int{1600, 20000}

func BenchmarkPage(b *testing.B) {
	for _, size := range sizes {
		s, series := sized(size)
		for _, format := range []string{"text", "openmetrics", "gzip", "protobuf"} {
			for _, way := range waysToServe(s) {
				if way.formats != "" && way.formats != format {
					continue
				}
				b.Run(fmt.Sprintf("%s/%d/%s", format, size, way.name), func(b *testing.B) {
					measure(b, s, series, format, way.handler)
				})
			}
		}
	}
}

type way struct {
	name    string
	handler http.Handler
	formats string // the one it is for; empty: all
}

// waysToServe are ours and what one would write with client_golang. The page of each holds the same series.
func waysToServe(s *snapshot.Snapshot) []way {
	families := expose.NewFamilies(ofDevices)
	ours := NewHandler(fixed{s}, families, nil, Gates{})
	body := new(bytes.Buffer)
	NewEncoder(families, Text).Encode(body, s) //nolint:errcheck // a bytes.Buffer never fails
	finished := body.Bytes()
	return []way{
		{"gpumeter", ours, ""},
		{"warm-gatherer", reference(families, s, nil), ""},
		{"const-metric", registered(constMetrics(families, s)), ""},
		{"gauge-vec", registered(newGaugeVecs(families, s)), ""},
		{"memcpy", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { copyPage(w, finished) }), "text"},
	}
}

// BenchmarkEncode is the encoder alone: its budget is 100 ns a series and no allocation.
func BenchmarkEncode(b *testing.B) {
	for _, size := range sizes {
		s, series := sized(size)
		for name, format := range map[string]Format{"text": Text, "openmetrics": OpenMetrics, "protobuf": Protobuf} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				e := NewEncoder(expose.NewFamilies(ofDevices), format)
				b.ReportAllocs()
				spent := processorTime()
				for i := range b.N {
					if i%16 == 0 { // changing costs more than encoding; the numbers differ all the same
						b.StopTimer()
						pause := processorTime()
						change(s, i)
						spent += processorTime() - pause
						b.StartTimer()
					}
					if err := e.Encode(io.Discard, s); err != nil {
						b.Fatal(err)
					}
				}
				report(b, processorTime()-spent, series)
			})
		}
	}
}

func ofDevices(d *metric.Desc) bool {
	return d.Scope == "device" || d.Scope == "partition" || d.Scope == "link" || d.Scope == "process"
}

// sized returns a node of about n series, each with 11 labels and those of its part and row, and
// how many they are.
func sized(n int) (*snapshot.Snapshot, int) {
	one, all := new(counting), new(counting)
	families := expose.NewFamilies(ofDevices)
	families.Walk(node(1), one)
	s := node(n / one.series)
	for i := range s.Devices {
		s.Devices[i].Labels = s.Devices[i].Owned
	}
	families.Walk(s, all)
	return s, all.series
}

type counting struct{ series int }

func (c *counting) Family(int)                                     {}
func (c *counting) Value(expose.Labels, float64)                   { c.series++ }
func (c *counting) Histogram(_ expose.Labels, h *metric.Histogram) { c.series += len(h.Counts) + 2 }

func measure(b *testing.B, s *snapshot.Snapshot, series int, format string, h http.Handler) {
	r := httptest.NewRequest("GET", "/metrics", nil)
	accept := map[string]string{"text": acceptText, "gzip": acceptText, "openmetrics": acceptOpenMetrics, "protobuf": acceptProto}[format]
	r.Header.Set("Accept", accept)
	if format == "gzip" {
		r.Header.Set("Accept-Encoding", "gzip")
	}
	w := &discard{header: http.Header{}}
	h.ServeHTTP(w, r) // warm
	runtime.GC()
	b.ReportAllocs()
	var spent int64
	for i := range b.N {
		b.StopTimer()
		change(s, i)
		b.StartTimer()
		start := processorTime()
		h.ServeHTTP(w, r)
		spent += processorTime() - start
	}
	report(b, spent, series)
}

func report(b *testing.B, spent int64, series int) {
	b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(spent)/float64(b.N)/float64(series), "cpu-ns/series")
}

// processorTime is what the whole process has used, user and system, in nanoseconds.
func processorTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { clear(d.header); return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// copyPage is the floor: the bytes of a finished page, copied through a buffer as ours is.
func copyPage(w io.Writer, page []byte) {
	var buffer [bufferSize]byte
	for len(page) > 0 {
		n := copy(buffer[:], page)
		w.Write(buffer[:n]) //nolint:errcheck // nothing is written
		page = page[n:]
	}
}

// registered serves a collector as most exporters do.
func registered(c prometheus.Collector) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// collector makes a Collector of a function; it is unchecked, as those of most exporters are.
type collector func(chan<- prometheus.Metric)

func (c collector) Describe(chan<- *prometheus.Desc)    {}
func (c collector) Collect(ch chan<- prometheus.Metric) { c(ch) }

// constMetrics makes every series anew with MustNewConstMetric, from descriptions made once.
func constMetrics(families *expose.Families, s *snapshot.Snapshot) prometheus.Collector {
	v := &constVisitor{families: families, descs: map[string]*prometheus.Desc{}}
	return collector(func(ch chan<- prometheus.Metric) {
		v.ch = ch
		families.Walk(s, v)
	})
}

type constVisitor struct {
	families *expose.Families
	descs    map[string]*prometheus.Desc // by metric and label names
	ch       chan<- prometheus.Metric
	at       *metric.Desc
}

func (v *constVisitor) Family(i int) { v.at = v.families.Descs[i] }

func (v *constVisitor) Value(at expose.Labels, n float64) {
	names, values := split(at)
	desc := v.descs[v.at.Prom]
	if desc == nil {
		desc = prometheus.NewDesc(v.at.Prom, v.at.Help, names, nil)
		v.descs[v.at.Prom] = desc
	}
	kind := prometheus.GaugeValue
	if v.at.Kind == metric.KindCounter {
		kind = prometheus.CounterValue
	}
	v.ch <- prometheus.MustNewConstMetric(desc, kind, n, values...)
}

func (v *constVisitor) Histogram(expose.Labels, *metric.Histogram) {}

func split(at expose.Labels) (names, values []string) {
	for _, l := range [...]*metric.Labels{at.Thing, at.Part, at.Row} {
		for _, p := range l.Pairs() {
			names, values = append(names, p.Name), append(values, p.Value)
		}
	}
	return names, values
}

// gaugeVecs sets the gauges of vectors at each scrape, the other common way.
type gaugeVecs struct {
	families *expose.Families
	snapshot *snapshot.Snapshot
	vecs     map[string]*prometheus.GaugeVec
	at       *metric.Desc
}

func newGaugeVecs(families *expose.Families, s *snapshot.Snapshot) *gaugeVecs {
	return &gaugeVecs{families: families, snapshot: s, vecs: map[string]*prometheus.GaugeVec{}}
}

func (v *gaugeVecs) Describe(chan<- *prometheus.Desc) {}

func (v *gaugeVecs) Collect(ch chan<- prometheus.Metric) {
	v.families.Walk(v.snapshot, v)
	for _, vec := range v.vecs {
		vec.Collect(ch)
	}
}

func (v *gaugeVecs) Family(i int) { v.at = v.families.Descs[i] }

func (v *gaugeVecs) Value(at expose.Labels, n float64) {
	names, values := split(at)
	vec := v.vecs[v.at.Prom]
	if vec == nil {
		vec = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: v.at.Prom, Help: v.at.Help}, names)
		v.vecs[v.at.Prom] = vec
	}
	vec.WithLabelValues(values...).Set(n)
}

func (v *gaugeVecs) Histogram(expose.Labels, *metric.Histogram) {}
