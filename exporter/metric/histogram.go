package metric

import "sort"

// Histogram counts observations in buckets with fixed upper bounds. It is not safe for
// concurrent use; a snapshot holds a Clone.
type Histogram struct {
	Bounds []float64 // upper bounds, rising, from the spec
	Counts []uint64  // one per bound and one beyond, not cumulative
	Sum    float64
}

// NewHistogram returns an empty histogram over the bounds, which it does not copy.
func NewHistogram(bounds []float64) *Histogram {
	return &Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

// Observe counts one observation.
func (h *Histogram) Observe(n float64) {
	h.Counts[sort.SearchFloat64s(h.Bounds, n)]++
	h.Sum += n
}

// Clone returns a copy that later observations do not change.
func (h *Histogram) Clone() *Histogram {
	c := *h
	c.Counts = append([]uint64(nil), h.Counts...)
	return &c
}
