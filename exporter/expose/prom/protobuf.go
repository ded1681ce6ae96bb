package prom

import (
	"encoding/binary"
	"io"
	"math"
	"math/bits"

	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// Wire types of protobuf. That of a varint is 0.
const (
	wireFixed64 = 1
	wireBytes   = 2
)

// Field tags of io/prometheus/client/metrics.proto: the number of a field, shifted by 3, and its wire type.
const (
	familyName      = 1<<3 | wireBytes
	familyHelp      = 2<<3 | wireBytes
	familyType      = 3 << 3
	familyMetric    = 4<<3 | wireBytes
	familyUnit      = 5<<3 | wireBytes
	metricGauge     = 2<<3 | wireBytes
	metricCounter   = 3<<3 | wireBytes
	metricHistogram = 7<<3 | wireBytes
	numberValue     = 1<<3 | wireFixed64 // of Gauge and of Counter
	histogramCount  = 1 << 3
	histogramSum    = 2<<3 | wireFixed64
	histogramBucket = 3<<3 | wireBytes
	bucketCount     = 1 << 3
	bucketBound     = 2<<3 | wireFixed64
)

// Values of the enum MetricType.
const (
	typeCounter, typeGauge, typeHistogram = 0, 1, 4
)

// numberSize is the size of a Gauge or a Counter: a tag and 64 bits.
const numberSize = 9

// protobufHead returns the fields of a MetricFamily other than its metrics.
func protobufHead(d *metric.Desc) string {
	kind := byte(typeGauge)
	switch d.Kind {
	case metric.KindCounter:
		kind = typeCounter
	case metric.KindHistogram:
		kind = typeHistogram
	}
	b := appendString(nil, familyName, d.Prom)
	b = appendString(b, familyHelp, d.Help)
	b = append(b, familyType, kind)
	if d.PromUnit != "" {
		b = appendString(b, familyUnit, d.PromUnit)
	}
	return string(b)
}

func appendString(b []byte, tag byte, s string) []byte {
	return append(binary.AppendUvarint(append(b, tag), uint64(len(s))), s...)
}

// protobufEncoder streams delimited protobuf. The length of a message precedes it, so each page is
// walked twice: the first walk computes the lengths, the second writes.
type protobufEncoder struct {
	*layout
	page      buffer
	sizes     []int // by family: the size of its message
	at        int   // index of the family being visited
	measuring bool  // the walk is the first
}

func (e *protobufEncoder) encode(w io.Writer, s *snapshot.Snapshot, wanted []bool) error {
	e.measuring = true
	e.families.WalkSome(s, wanted, e)
	e.measuring = false
	e.page.start(w)
	e.families.WalkSome(s, wanted, e)
	return e.page.end()
}

// Family begins a message.
func (e *protobufEncoder) Family(i int) {
	e.at = i
	if e.measuring {
		e.sizes[i] = len(e.heads[i])
		return
	}
	b := binary.AppendUvarint(e.page.buf, uint64(e.sizes[i]))
	e.page.buf = append(b, e.heads[i]...)
}

// Value visits a gauge or a counter.
func (e *protobufEncoder) Value(at expose.Labels, n float64) {
	size := labelsSize(at) + 2 + numberSize
	if e.measuring {
		e.sizes[e.at] += 1 + varintSize(uint64(size)) + size
		return
	}
	tag := byte(metricGauge)
	if e.families.Descs[e.at].Kind == metric.KindCounter {
		tag = metricCounter
	}
	b := e.begin(at, size)
	b = append(b, tag, numberSize, numberValue)
	e.page.buf = binary.LittleEndian.AppendUint64(b, math.Float64bits(n))
	if len(e.page.buf) >= bufferSize {
		e.page.flush()
	}
}

// Histogram visits a histogram. The bucket +Inf is left out, as client_golang does: the count implies it.
func (e *protobufEncoder) Histogram(at expose.Labels, h *metric.Histogram) {
	content, total := numberSize, uint64(0) // the sum, and then the buckets and the count
	for i, n := range h.Counts {
		total += n
		if i < len(h.Bounds) {
			size := bucketSize(total)
			content += 1 + varintSize(uint64(size)) + size
		}
	}
	content += 1 + varintSize(total)
	size := labelsSize(at) + 1 + varintSize(uint64(content)) + content
	if e.measuring {
		e.sizes[e.at] += 1 + varintSize(uint64(size)) + size
		return
	}
	b := e.begin(at, size)
	b = binary.AppendUvarint(append(b, metricHistogram), uint64(content))
	b = binary.AppendUvarint(append(b, histogramCount), total)
	b = binary.LittleEndian.AppendUint64(append(b, histogramSum), math.Float64bits(h.Sum))
	total = 0
	for i, bound := range h.Bounds {
		total += h.Counts[i]
		b = binary.AppendUvarint(append(b, histogramBucket), uint64(bucketSize(total)))
		b = binary.AppendUvarint(append(b, bucketCount), total)
		b = binary.LittleEndian.AppendUint64(append(b, bucketBound), math.Float64bits(bound))
	}
	e.page.buf = b
	if len(e.page.buf) >= bufferSize {
		e.page.flush()
	}
}

// begin appends the start of a Metric of that size: its labels.
func (e *protobufEncoder) begin(at expose.Labels, size int) []byte {
	b := binary.AppendUvarint(append(e.page.buf, familyMetric), uint64(size))
	b = append(b, at.Thing.Wire()...)
	b = append(b, at.Part.Wire()...)
	return append(b, at.Row.Wire()...)
}

// labelsSize returns the size of the labels of a series.
func labelsSize(at expose.Labels) int {
	return len(at.Thing.Wire()) + len(at.Part.Wire()) + len(at.Row.Wire())
}

// bucketSize returns the size of a Bucket with that count.
func bucketSize(count uint64) int { return 1 + varintSize(count) + numberSize }

// varintSize returns the size of a varint.
func varintSize(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }
