// Package limit bounds what the clients of the HTTP server can take: connections, requests at once, and
// lines of the log. All clients share each limit fairly, so that one of them cannot take it all.
package limit

import "net/netip"

// client is what limits are shared by: an IPv4 address, or an IPv6 network of 64 bits, which one machine
// usually has for itself. The zero value is a client without an address, such as that of a Unix socket.
type client = netip.Prefix

// clientOf returns the client with a remote address such as 10.0.0.7:4711.
func clientOf(address string) client {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return client{}
	}
	ip := at.Addr().Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits) // fails on an invalid number of bits only
	return p
}
