package sim

// minute is the power of the last ticks, in milliwatts: as many as gpu.power.peak looks back.
// Its length divides the cycle's, so that the first tick of a cycle follows the last.
type minute [60]int64

// end takes in a tick that is over.
func (m *minute) end(tick, power int64) { m[tick%int64(len(m))] = power }

// peak is the highest power of the minute and of the tick that holds.
func (m *minute) peak(now int64) int64 {
	for _, power := range m {
		now = max(now, power)
	}
	return now
}
