//go:build !linux

package limit

import "net"

// setUserTimeout does nothing: only Linux has this timeout.
func setUserTimeout(*net.TCPConn) {}
