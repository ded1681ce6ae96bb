package web

import "net/http"

// debug serves a page that names pods and processes: to the admin socket, to this machine, and with Debug to
// all. A request that was passed on by a proxy, such as the sidecar of a service mesh, comes from elsewhere.
func (c Config) debug(h http.Handler, admin bool, limited func(http.Handler) http.Handler) http.Handler {
	if h == nil {
		return http.NotFoundHandler()
	}
	h = limited(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case admin, c.Debug:
			h.ServeHTTP(w, r)
		case forwarded(r):
			forbid(w, "This page is not for requests that a proxy passed on; --web.enable-debug shows it to all.")
		case !isLocal(r.RemoteAddr) || !namesLoopback(r.Host):
			forbid(w, "This page is for requests from the exporter's own machine or pod; --web.enable-debug shows it to all.")
		default:
			h.ServeHTTP(w, r)
		}
	})
}
