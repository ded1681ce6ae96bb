// Package stdout prints one snapshot, as a table people like to read or as JSON.
package stdout

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/gpumeter/gpumeter/exporter/diagnosis"
	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// page is the JSON document: every metric that has a series.
type page struct {
	Taken    time.Time           `json:"taken"`
	Findings []diagnosis.Finding `json:"findings"`
	Metrics  []*family           `json:"metrics"`
}

type family struct {
	Name   string   `json:"name"` // Prometheus'
	Kind   string   `json:"type"`
	Unit   string   `json:"unit,omitempty"`
	Help   string   `json:"help"`
	Series []series `json:"series"`
}

type series struct {
	Labels  map[string]string `json:"labels,omitempty"`
	Value   *number           `json:"value,omitempty"`
	Buckets map[string]uint64 `json:"buckets,omitempty"` // cumulative, by upper bound
	Sum     *number           `json:"sum,omitempty"`
	Count   *uint64           `json:"count,omitempty"`
}

// number is a float that may be infinite or no number, which JSON writes as text.
type number float64

// MarshalJSON writes the shortest form that reads back the same.
func (n number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return json.Marshal(strconv.FormatFloat(f, 'g', -1, 64))
	}
	return json.Marshal(f)
}

// JSON prints all series of a snapshot, by metric, and what was found wrong.
func JSON(w io.Writer, families *expose.Families, s *snapshot.Snapshot, findings []diagnosis.Finding) error {
	c := &collector{families: families, page: page{Taken: s.Taken.UTC(), Findings: append([]diagnosis.Finding{}, findings...)}}
	families.Walk(s, c)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(c.page); err != nil {
		return fmt.Errorf("snapshot as JSON: %w", err)
	}
	return nil
}

// collector is an expose.Visitor that keeps everything.
type collector struct {
	families *expose.Families
	page     page
}

// Family begins a metric.
func (c *collector) Family(i int) {
	d := c.families.Descs[i]
	c.page.Metrics = append(c.page.Metrics, &family{Name: d.Prom, Kind: d.Kind.Prom(), Unit: d.Unit, Help: d.Help})
}

func (c *collector) add(x series, labels ...*metric.Labels) {
	x.Labels = map[string]string{}
	for _, l := range labels {
		for _, p := range l.Pairs() {
			x.Labels[p.Name] = p.Value
		}
	}
	f := c.page.Metrics[len(c.page.Metrics)-1]
	f.Series = append(f.Series, x)
}

// Value keeps a number.
func (c *collector) Value(at expose.Labels, n float64) {
	value := number(n)
	c.add(series{Value: &value}, at.Thing, at.Part, at.Row)
}

// Histogram keeps a histogram.
func (c *collector) Histogram(at expose.Labels, h *metric.Histogram) {
	buckets, total := map[string]uint64{}, uint64(0)
	for i, n := range h.Counts {
		total += n
		bound := "+Inf"
		if i < len(h.Bounds) {
			bound = strconv.FormatFloat(h.Bounds[i], 'g', -1, 64)
		}
		buckets[bound] = total
	}
	sum := number(h.Sum)
	c.add(series{Buckets: buckets, Sum: &sum, Count: &total}, at.Thing, at.Part, at.Row)
}
