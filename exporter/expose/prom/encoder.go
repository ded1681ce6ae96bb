package prom

import (
	"io"
	"math"
	"strconv"

	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// bufferSize is how much of a page is held before it is written on: enough that a write costs
// nothing beside the copying, whatever the size of the page.
const bufferSize = 64 << 10

// encoder streams snapshots in one format. It is not safe for concurrent use.
type encoder interface {
	// encode writes the series of a snapshot whose metrics are wanted (nil: all), without an end mark.
	encode(w io.Writer, s *snapshot.Snapshot, wanted []bool) error
}

// newEncoder returns an encoder for the format of a layout.
func newEncoder(l *layout) encoder {
	if l.format == Protobuf {
		return &protobufEncoder{layout: l, page: newBuffer(), sizes: make([]int, len(l.families.Descs))}
	}
	return &textEncoder{layout: l, page: newBuffer()}
}

// Encoder writes snapshots in one format. It is not safe for concurrent use.
type Encoder struct{ encoder encoder }

// NewEncoder returns an encoder of those families.
func NewEncoder(families *expose.Families, format Format) *Encoder {
	return &Encoder{newEncoder(newLayout(families, format))}
}

// Encode writes the page of a snapshot, without the end mark of OpenMetrics and without the series of
// the process. It allocates nothing.
func (e *Encoder) Encode(w io.Writer, s *snapshot.Snapshot) error {
	return e.encoder.encode(w, s, nil)
}

// buffer collects a page and writes it on in pieces.
type buffer struct {
	w   io.Writer
	err error // of the first write that failed
	buf []byte
}

func newBuffer() buffer { return buffer{buf: make([]byte, 0, bufferSize+4096)} }

// start begins a page.
func (p *buffer) start(w io.Writer) { p.w, p.err, p.buf = w, nil, p.buf[:0] }

// end writes what is left, and returns the error of the page.
func (p *buffer) end() error {
	p.flush()
	p.w = nil
	return p.err
}

// flush writes the buffer. After an error it only empties it.
func (p *buffer) flush() {
	if p.err == nil && len(p.buf) > 0 {
		_, p.err = p.w.Write(p.buf)
	}
	p.buf = p.buf[:0]
}

// textEncoder streams the text formats.
type textEncoder struct {
	*layout
	page buffer
	at   int // index of the family being written
}

func (e *textEncoder) encode(w io.Writer, s *snapshot.Snapshot, wanted []bool) error {
	e.page.start(w)
	e.families.WalkSome(s, wanted, e)
	return e.page.end()
}

// Family writes a family's header.
func (e *textEncoder) Family(i int) {
	e.at = i
	e.page.buf = append(e.page.buf, e.heads[i]...)
}

// Value writes one line.
func (e *textEncoder) Value(at expose.Labels, n float64) {
	b := append(e.page.buf, e.families.Descs[e.at].Prom...)
	b = appendLabels(b, at)
	b = append(b, ' ')
	b = e.appendNumber(b, n)
	e.page.buf = append(b, '\n')
	if len(e.page.buf) >= bufferSize {
		e.page.flush()
	}
}

// Histogram writes one line per bucket, the sum and the count.
func (e *textEncoder) Histogram(at expose.Labels, h *metric.Histogram) {
	var total uint64
	name := e.families.Descs[e.at].Prom
	for i, n := range h.Counts {
		total += n
		b := append(e.page.buf, name...)
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
		e.page.buf = append(b, '\n')
	}
	e.sample("_sum", at, h.Sum)
	b := append(append(e.page.buf, name...), "_count"...)
	b = append(appendLabels(b, at), ' ')
	e.page.buf = append(strconv.AppendUint(b, total, 10), '\n')
	if len(e.page.buf) >= bufferSize {
		e.page.flush()
	}
}

func (e *textEncoder) sample(suffix string, at expose.Labels, n float64) {
	b := append(append(e.page.buf, e.families.Descs[e.at].Prom...), suffix...)
	b = append(appendLabels(b, at), ' ')
	e.page.buf = append(e.appendNumber(b, n), '\n')
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
func (e *textEncoder) appendNumber(b []byte, n float64) []byte {
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
