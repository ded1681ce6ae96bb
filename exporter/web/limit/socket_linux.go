package limit

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// userTimeout is how long the kernel keeps what a client does not take, also after the connection was closed.
const userTimeout = 30 * time.Second

// setUserTimeout ends a connection whose client takes nothing for long.
func setUserTimeout(t *net.TCPConn) {
	c, err := t.SyscallConn()
	if err != nil {
		return // it has ended
	}
	c.Control(func(fd uintptr) { //nolint:errcheck // it has ended
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds())) //nolint:errcheck // the server's own timeouts hold as well
	})
}
