package web

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peer returns the user and the process at the other end of a Unix socket, for the log.
func peer(c *net.UnixConn) string {
	raw, err := c.SyscallConn()
	if err != nil {
		return "unknown"
	}
	said := "unknown"
	raw.Control(func(fd uintptr) { //nolint:errcheck // it is unknown then
		if u, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			said = fmt.Sprintf("uid %d pid %d", u.Uid, u.Pid)
		}
	})
	return said
}
