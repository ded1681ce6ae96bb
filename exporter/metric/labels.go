package metric

import (
	"encoding/binary"
	"strings"
	"sync/atomic"
)

// Label is a name and its value.
type Label struct{ Name, Value string }

// Labels is an immutable list of labels, rendered once as it stands between the braces of a
// Prometheus text line, so that writing a series copies bytes. Nil is the empty list.
type Labels struct {
	pairs []Label
	text  string
	wire  atomic.Pointer[string] // made by the first call of Wire
}

// NewLabels keeps the labels in the order given and drops those with an empty value, which
// Prometheus holds to be absent. Bytes that are not UTF-8 become U+FFFD.
func NewLabels(pairs ...Label) *Labels {
	l := &Labels{pairs: make([]Label, 0, len(pairs))}
	var b strings.Builder
	for _, p := range pairs {
		if p.Value == "" {
			continue
		}
		p.Value = strings.ToValidUTF8(p.Value, "\uFFFD")
		if len(l.pairs) > 0 {
			b.WriteByte(',')
		}
		b.WriteString(p.Name)
		b.WriteString(`="`)
		escape.WriteString(&b, p.Value) //nolint:errcheck // a strings.Builder never fails
		b.WriteByte('"')
		l.pairs = append(l.pairs, p)
	}
	if len(l.pairs) == 0 {
		return nil
	}
	l.text = b.String()
	return l
}

// The three escapes of the text format and of OpenMetrics, which agree on label values.
var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// Pairs returns the labels; the caller must not change them.
func (l *Labels) Pairs() []Label {
	if l == nil {
		return nil
	}
	return l.pairs
}

// Text returns the labels as name="value" joined by commas, escaped.
func (l *Labels) Text() string {
	if l == nil {
		return ""
	}
	return l.text
}

// Wire returns the labels as protobuf encodes them in a Metric of io.prometheus.client: field 1,
// repeated, of LabelPair. The first call renders it, since few scrapes ask for protobuf. It is safe
// for concurrent use.
func (l *Labels) Wire() string {
	if l == nil {
		return ""
	}
	if w := l.wire.Load(); w != nil {
		return *w
	}
	var b []byte
	for _, p := range l.pairs {
		size := fieldSize(p.Name) + fieldSize(p.Value)
		b = binary.AppendUvarint(append(b, 1<<3|2), uint64(size))
		b = appendField(b, 1, p.Name)
		b = appendField(b, 2, p.Value)
	}
	w := string(b)
	l.wire.Store(&w)
	return w
}

// fieldSize returns the size of a protobuf field of type string with a number below 16.
func fieldSize(s string) int {
	var b [binary.MaxVarintLen64]byte
	return 1 + binary.PutUvarint(b[:], uint64(len(s))) + len(s)
}

// appendField appends a protobuf field of type string with a number below 16.
func appendField(b []byte, number byte, s string) []byte {
	return append(binary.AppendUvarint(append(b, number<<3|2), uint64(len(s))), s...)
}

// Get returns the value of a label, empty when it is absent.
func (l *Labels) Get(name string) string {
	for _, p := range l.Pairs() {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}
