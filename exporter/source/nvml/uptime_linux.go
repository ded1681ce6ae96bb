//go:build cgo

package nvml

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime is how long the machine has been running, suspended or not; 0 when that is not known.
// The clock says so inside containers too, where /proc/uptime may be of the container.
func uptime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
