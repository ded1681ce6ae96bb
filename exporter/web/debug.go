package web

import (
	"io"
	"net"
	"net/http"
	"strings"
)

// debug lets other machines through only when that is wanted: what it guards names pods and processes.
func (c Config) debug(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h == nil {
			http.NotFound(w, r)
			return
		}
		if !c.Debug && !(local(r.RemoteAddr) && ours(r.Host)) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "This page is for requests from the exporter's own machine or pod; --web.enable-debug shows it to all.\n") //nolint:errcheck // the client has gone
			return
		}
		h.ServeHTTP(w, r)
	})
}

// local says that a request comes from this machine, or from this pod.
func local(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && net.ParseIP(host).IsLoopback()
}

// ours says that a request means this machine by its own name, not by one that somebody's name server
// gives it: a page in a browser here could ask by that.
func ours(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}
