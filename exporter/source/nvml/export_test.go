package nvml

import "time"

// At is the configuration with a clock that a test turns.
func (c Config) At(now func() time.Time) Config {
	c.now = now
	return c
}
