package metric

// Value is one reading: a number, or the reason there is none.
// The zero Value was never read, so a forgotten reading is never a zero.
// It is 16 bytes, and failing allocates nothing: reasons are interned.
type Value struct {
	number float64
	state  *Reason // nil: not read; present: number holds
}

var present = &Reason{Text: "present"}

// Set records a number in the unit of the spec.
func (v *Value) Set(n float64) { v.number, v.state = n, present }

// SetBool records a state: 1 when it holds, else 0.
func (v *Value) SetBool(b bool) {
	if b {
		v.Set(1)
	} else {
		v.Set(0)
	}
}

// Fail records why there is no number.
func (v *Value) Fail(why *Reason) { v.number, v.state = 0, why }

// Get returns the number and whether there is one.
func (v Value) Get() (float64, bool) { return v.number, v.state == present }

// Why returns the reason there is no number: Unread for the zero Value, nil when there is one.
func (v Value) Why() *Reason {
	switch v.state {
	case present:
		return nil
	case nil:
		return Unread
	}
	return v.state
}

// Keyed is one reading of a metric with an open attribute, such as one XID code.
// Labels are made once by the generated attributes struct of the metric, not at each read.
type Keyed struct {
	Labels *Labels
	Value  Value
}
