package nvml

import "github.com/gpumeter/gpumeter/exporter/metric"

// counter watches a count of the driver's, which may only rise. A single lower number is a slip:
// taken for a reset, it would look like the whole count over again once the old one is back. A
// count that stays low was reset: ECC errors are cleared, a device is reset.
type counter struct {
	top    float64 // highest number so far
	low    float64 // the lower number the last read gave
	fallen bool    // the last read gave a lower number
}

// rises says whether the number is to be believed.
func (c *counter) rises(n float64) bool {
	switch {
	case n >= c.top:
	case c.fallen && n >= c.low:
	default:
		c.low, c.fallen = n, true
		return false
	}
	c.top, c.fallen = n, false
	return true
}

// check refuses a reading that is not to be believed.
func (c *counter) check(v *metric.Value) {
	if n, ok := v.Get(); ok && !c.rises(n) {
		v.Fail(metric.Implausible)
	}
}
