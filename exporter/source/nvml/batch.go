//go:build cgo

package nvml

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// batch asks for all numbered fields of a device in one call. Its buffer is used again each time.
type batch struct {
	asked  []field
	absent []field // of the spec, but not of this driver
	values []nvml.FieldValue
	before []float64 // what each counter of seconds said last
	uptime func() time.Duration
}

func newBatch(table []field, driver int, uptime func() time.Duration) batch {
	b := batch{uptime: uptime}
	for _, f := range table {
		if f.of(driver) {
			b.asked = append(b.asked, f)
		} else {
			b.absent = append(b.absent, f)
		}
	}
	b.values = make([]nvml.FieldValue, len(b.asked))
	b.before = make([]float64, len(b.asked))
	return b
}

func (b *batch) read(p *pass) {
	if p.down != nil {
		return
	}
	for i := range b.absent { // first, as another number may give the same reading
		b.absent[i].to(p.out).Fail(metric.Unsupported)
	}
	if len(b.asked) == 0 {
		return
	}
	for i := range b.asked {
		// An entry the driver leaves alone must not look like an answer.
		b.values[i] = nvml.FieldValue{FieldId: b.asked[i].id, NvmlReturn: uint32(nvml.ERROR_NO_DATA)}
	}
	if why := p.why(p.h.dev.GetFieldValues(b.values)); why != nil {
		for i := range b.asked {
			b.asked[i].to(p.out).Fail(why)
		}
		return
	}
	for i := range b.values {
		v, why := b.asked[i].to(p.out), p.why(nvml.Return(b.values[i].NvmlReturn))
		if why != nil {
			v.Fail(why)
			continue
		}
		b.put(i, v)
	}
}

// put keeps one answer that the driver says is good.
func (b *batch) put(i int, v *metric.Value) {
	f, kind := &b.asked[i], nvml.ValueType(b.values[i].ValueType)
	n, ok := union(b.values[i].Value).decode(kind)
	n *= f.scale
	ok = ok && plausible(f.unit, n)
	if f.counter && kind == nvml.VALUE_TYPE_DOUBLE { // nothing counts in fractions
		ok = false
	}
	if f.counter && f.unit == seconds {
		ok = b.time(i, n, kind) && ok
	}
	if !ok {
		v.Fail(metric.Implausible)
		return
	}
	v.Set(n)
}

// time checks a counter of seconds. The numbers of these fields have meant other things in other
// drivers, so what does not look like time is none: 64 bits of nanoseconds that never fall while
// the library is open, and are no more than the machine has been running.
func (b *batch) time(i int, n float64, kind nvml.ValueType) bool {
	const slack = 60 // seconds, for two clocks
	fell := n < b.before[i]
	b.before[i] = n
	wide := kind == nvml.VALUE_TYPE_UNSIGNED_LONG || kind == nvml.VALUE_TYPE_UNSIGNED_LONG_LONG
	up := b.uptime()
	return wide && !fell && (up == 0 || n <= up.Seconds()+slack)
}
