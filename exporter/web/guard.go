package web

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
)

// forwarded reports whether a proxy passed a request on. Its client is then not the one who connected, so
// that a loopback address says nothing.
func forwarded(r *http.Request) bool {
	for name := range r.Header {
		switch {
		case name == "Forwarded", name == "Via", name == "X-Real-Ip", strings.HasPrefix(name, "X-Forwarded-"):
			return true
		}
	}
	return false
}

// isLocal reports whether a remote address is of this machine, or of this pod.
func isLocal(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && net.ParseIP(host).IsLoopback()
}

// hostOf returns the name or the IP address in a Host header.
func hostOf(header string) string {
	if name, _, err := net.SplitHostPort(header); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
}

// namesLoopback reports whether a Host header names this machine by its loopback address or as localhost. A
// page in a browser here could use any other name, which its owner's name server points to this machine.
func namesLoopback(header string) bool {
	host := hostOf(header)
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

// namesUs reports whether a Host header has an IP address or a name of this machine. With any other name it
// may be a page in a browser whose name server points to this machine (DNS rebinding).
func (c Config) namesUs(header string) bool {
	host := hostOf(header)
	if namesLoopback(header) || net.ParseIP(host) != nil {
		return true
	}
	return slices.ContainsFunc(c.Hosts, func(ours string) bool { return ours != "" && strings.EqualFold(host, ours) })
}

// forbid answers with 403, and why.
func forbid(w http.ResponseWriter, why string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusForbidden)
	io.WriteString(w, why+"\n") //nolint:errcheck // the client has gone
}
