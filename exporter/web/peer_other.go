//go:build !linux

package web

import "net"

// peer returns the process at the other end of a Unix socket; only Linux is asked.
func peer(*net.UnixConn) string { return "unknown" }
