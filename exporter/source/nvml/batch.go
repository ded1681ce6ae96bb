//go:build cgo

package nvml

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// batch asks for the numbered fields of a device, or of its links, in one call. Its buffers are
// used again each time.
type batch[T any] struct {
	uptime func() time.Duration
	absent []lacking[T] // of the spec, but not of this driver
	asked  []item[T]    // in the order of the spec, a reading's alternatives side by side
	values []nvml.FieldValue
	on     []int // which of asked each of values is of
	stale  bool  // on is to be made again
}

// item is a field of one target: the device itself, or one of its links.
type item[T any] struct {
	*field[T]
	target int
	scope  uint32
	answer answer
	count  counter
	told   bool // it has given a number
	first  int  // of asked: the first of the numbers for the same reading
}

// lacking is a field of one target that the driver does not know.
type lacking[T any] struct {
	*field[T]
	target int
}

// mostFields is how many fields one call asks for: no more than other tools are known to.
const mostFields = 256

func newBatch[T any](uptime func() time.Duration) batch[T] {
	return batch[T]{uptime: uptime, stale: true}
}

// add asks for the fields of the table that the driver knows, of one more target.
func (b *batch[T]) add(table []field[T], driver, target int, scope uint32, of func(*field[T]) bool) {
	first := len(b.asked)
	for i := range table {
		f := &table[i]
		if !f.instead {
			first = len(b.asked)
		}
		switch {
		case !of(f):
		case f.of(driver):
			b.asked = append(b.asked, item[T]{field: f, target: target, scope: scope + f.part, first: first})
		default:
			b.absent = append(b.absent, lacking[T]{f, target})
		}
	}
	b.stale = true
}

// forget asks again for what was refused.
func (b *batch[T]) forget() { b.each((*answer).forget) }

// retry asks again for what used to succeed.
func (b *batch[T]) retry() { b.each((*answer).retry) }

// forgetMode forgets what the device supports.
func (b *batch[T]) forgetMode() { b.each(func(a *answer) { *a = answer{} }) }

func (b *batch[T]) each(f func(*answer)) {
	for i := range b.asked {
		f(&b.asked[i].answer)
	}
	b.stale = true
}

// choose makes the list of what is asked: not what was refused, nor what another number stands for.
func (b *batch[T]) choose() {
	b.stale = false
	b.on = b.on[:0]
	for i := range b.asked {
		if !b.asked[i].answer.off && !b.replaced(i) {
			b.on = append(b.on, i)
		}
	}
	b.values = make([]nvml.FieldValue, len(b.on))
}

// replaced says whether another number of the same reading has answered. From then on that one alone
// is the reading: each counts from a beginning of its own.
func (b *batch[T]) replaced(i int) bool {
	first := b.asked[i].first
	for k := first; k < len(b.asked) && b.asked[k].first == first; k++ {
		if k != i && b.asked[k].told {
			return true
		}
	}
	return false
}

// read fills the targets, of which to returns each.
func (b *batch[T]) read(p *pass, to func(target int) *T) {
	if p.down != nil || len(b.asked)+len(b.absent) == 0 {
		return
	}
	for i := range b.absent { // first, as another number may give the same reading
		b.absent[i].fail(to(b.absent[i].target), metric.Unsupported)
	}
	for i := range b.asked {
		if b.asked[i].answer.off {
			b.asked[i].fail(to(b.asked[i].target), metric.Unsupported)
		}
	}
	if b.stale {
		b.choose()
	}
	for first := 0; first < len(b.on); first += mostFields {
		b.ask(p, first, min(first+mostFields, len(b.on)), to)
	}
}

// ask makes one call.
func (b *batch[T]) ask(p *pass, first, end int, to func(int) *T) {
	values, on := b.values[first:end], b.on[first:end]
	for i, k := range on {
		// An entry the driver leaves alone must not look like an answer.
		values[i] = nvml.FieldValue{FieldId: b.asked[k].id, ScopeId: b.asked[k].scope, NvmlReturn: uint32(nvml.ERROR_NO_DATA)}
	}
	_, why := call(p, askFields, 0, func() (struct{}, nvml.Return) { return struct{}{}, p.dev.GetFieldValues(values) })
	if why == metric.Unread {
		return
	}
	for i, k := range on {
		x := &b.asked[k]
		if why != nil {
			x.fail(to(x.target), why)
			continue
		}
		b.take(p, k, &values[i], to(x.target))
	}
}

// take keeps one answer. Of the numbers for one reading, the first that the device knows is it.
func (b *batch[T]) take(p *pass, k int, v *nvml.FieldValue, out *T) {
	x, ret := &b.asked[k], nvml.Return(v.NvmlReturn)
	if ret == nvml.ERROR_INVALID_ARGUMENT { // the number is all there is to refuse
		ret = nvml.ERROR_NOT_SUPPORTED
	}
	why := p.why(&x.answer, ret)
	b.stale = b.stale || x.answer.off
	if x.instead && (b.replaced(k) || x.to(out).Why() != metric.Unsupported && x.to(out).Why() != metric.Unread) {
		return // one before it is the reading, even when it failed this time
	}
	if why != nil {
		x.fail(out, why)
		return
	}
	r := raw{v.ValueType, v.Value}
	n, why := r.plain()
	if x.as != nil {
		n, why = x.as(r)
	}
	n *= x.scale
	if why == nil && (!sound(x.field, n) || x.counter && !b.counts(x, r, n)) {
		why = metric.Implausible
	}
	if why != nil {
		x.fail(out, why)
		return
	}
	b.stale = b.stale || !x.told
	x.told = true
	x.set(out, n)
}

// sound says whether a device can have the number. What stands for a state has the unit of one, and
// yet any small number, as has a generation, whose own function has checked it.
func sound[T any](f *field[T], n float64) bool {
	switch {
	case f.states != nil:
		return n >= 0 && n <= lastState
	case f.as != nil && f.unit == state:
		return true
	}
	return plausible(f.unit, n)
}

// counts checks a count. Nothing counts in fractions. The numbers of times have meant other things
// in other drivers, so what does not look like time is none: 64 bits of nanoseconds, no more than
// the machine has been running.
func (b *batch[T]) counts(x *item[T], r raw, n float64) bool {
	const slack = 60 // seconds, for two clocks
	if r.kind == typeDouble {
		return false
	}
	if x.unit == seconds {
		if up := b.uptime(); !r.wide() || up != 0 && n > up.Seconds()+slack {
			return false
		}
	}
	return x.count.rises(n)
}
