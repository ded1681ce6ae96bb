package prom

import (
	"io"
	"math"
	"strconv"

	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// Format is a text format of Prometheus.
type Format int

// The two formats that are streamed.
const (
	Text        Format = iota // text/plain; version=0.0.4
	OpenMetrics               // application/openmetrics-text; version=1.0.0
)

// bufferSize is how much of a page is held before it is written on: enough that a write costs
// nothing beside the copying, whatever the size of the page.
const bufferSize = 64 << 10

// Encoder streams snapshots in one format. It is not safe for concurrent use; Handler keeps a pool.
type Encoder struct {
	families *expose.Families
	format   Format
	headers  []string // HELP, TYPE and UNIT of each family
	names    []string // what each sample's line begins with

	w   io.Writer
	err error
	buf []byte
	at  int // the family being written
}

// NewEncoder returns an encoder of those families.
func NewEncoder(families *expose.Families, format Format) *Encoder {
	e := &Encoder{families: families, format: format, buf: make([]byte, 0, bufferSize+4096)}
	for _, d := range families.Descs {
		e.headers = append(e.headers, header(d, format))
		e.names = append(e.names, d.Prom)
	}
	return e
}

// Encode writes the page of a snapshot, without the end mark of OpenMetrics. It allocates nothing.
func (e *Encoder) Encode(w io.Writer, s *snapshot.Snapshot) error {
	e.w, e.err, e.buf = w, nil, e.buf[:0]
	e.families.Walk(s, e)
	e.flush()
	e.w = nil
	return e.err
}

// Family writes a family's header.
func (e *Encoder) Family(i int) {
	e.at = i
	e.buf = append(e.buf, e.headers[i]...)
}

// Value writes one line.
func (e *Encoder) Value(at expose.Labels, n float64) {
	b := append(e.buf, e.names[e.at]...)
	b = appendLabels(b, at)
	b = append(b, ' ')
	b = e.appendNumber(b, n)
	e.buf = append(b, '\n')
	if len(e.buf) >= bufferSize {
		e.flush()
	}
}

// Histogram writes one line per bucket, the sum and the count.
func (e *Encoder) Histogram(at expose.Labels, h *metric.Histogram) {
	var total uint64
	name := e.names[e.at]
	for i, n := range h.Counts {
		total += n
		b := append(e.buf, name...)
		b = append(b, "_bucket{"...)
		for _, labels := range [...]*metric.Labels{at.Thing, at.Part, at.Row} {
			if labels != nil {
				b = append(append(b, labels.Text()...), ',')
			}
		}
		b = append(b, `le="`...)
		if i < len(h.Bounds) {
			b = e.appendNumber(b, h.Bounds[i])
		} else {
			b = append(b, "+Inf"...)
		}
		b = append(b, `"} `...)
		b = strconv.AppendUint(b, total, 10)
		e.buf = append(b, '\n')
	}
	e.sample("_sum", at, h.Sum)
	b := append(append(e.buf, name...), "_count"...)
	b = append(appendLabels(b, at), ' ')
	e.buf = append(strconv.AppendUint(b, total, 10), '\n')
	if len(e.buf) >= bufferSize {
		e.flush()
	}
}

func (e *Encoder) sample(suffix string, at expose.Labels, n float64) {
	b := append(append(e.buf, e.names[e.at]...), suffix...)
	b = append(appendLabels(b, at), ' ')
	e.buf = append(e.appendNumber(b, n), '\n')
}

func (e *Encoder) flush() {
	if e.err == nil && len(e.buf) > 0 {
		_, e.err = e.w.Write(e.buf)
	}
	e.buf = e.buf[:0]
}

func appendLabels(b []byte, at expose.Labels) []byte {
	open := byte('{')
	for _, labels := range [...]*metric.Labels{at.Thing, at.Part, at.Row} {
		if labels != nil {
			b = append(append(b, open), labels.Text()...)
			open = ','
		}
	}
	if open == '{' {
		return b
	}
	return append(b, '}')
}

// appendNumber writes a number as client_golang's encoders do: the shortest form that reads back
// the same; OpenMetrics marks whole numbers as floats.
func (e *Encoder) appendNumber(b []byte, n float64) []byte {
	const plain = 1e6 // from here on the shortest form has an exponent
	start := len(b)
	switch {
	case n > -plain && n < plain && n == math.Trunc(n): // -0 is 0, as there
		b = strconv.AppendInt(b, int64(n), 10)
		if e.format == OpenMetrics {
			b = append(b, ".0"...)
		}
		return b
	case math.IsInf(n, 1):
		return append(b, "+Inf"...)
	case math.IsInf(n, -1):
		return append(b, "-Inf"...)
	case math.IsNaN(n):
		return append(b, "NaN"...)
	}
	b = strconv.AppendFloat(b, n, 'g', -1, 64)
	if e.format == OpenMetrics && !hasPointOrExponent(b[start:]) {
		b = append(b, ".0"...)
	}
	return b
}

func hasPointOrExponent(b []byte) bool {
	for _, c := range b {
		if c == '.' || c == 'e' {
			return true
		}
	}
	return false
}
