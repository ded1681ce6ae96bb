//go:build cgo && !linux

package nvml

import "time"

// uptime is not known here.
func uptime() time.Duration { return 0 }
