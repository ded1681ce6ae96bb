package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// What names pods and processes is for this machine alone, unless it is wanted otherwise; nor is a page
// in a browser here to read it by a name that leads to this machine.
func TestDebugIsForThisMachine(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "whose") }) //nolint:errcheck // a recorder takes all
	for _, c := range []struct {
		from, host string
		open       bool
		want       int
	}{
		{"127.0.0.1:4711", "localhost:9450", false, 200},
		{"[::1]:4711", "[::1]:9450", false, 200},
		{"[::1]:4711", "[::1]", false, 200},
		{"127.0.0.1:4711", "127.0.0.1", false, 200},
		{"10.0.0.7:4711", "localhost:9450", false, 403},
		{"10.0.0.7:4711", "node-1:9450", false, 403},
		{"127.0.0.1:4711", "evil.example:9450", false, 403},
		{"nonsense", "localhost", false, 403},
		{"10.0.0.7:4711", "node-1:9450", true, 200},
	} {
		r := httptest.NewRequest("GET", "/debug/attribution", nil)
		r.RemoteAddr, r.Host = c.from, c.host
		w := httptest.NewRecorder()
		NewHandler(Config{Feed: feed{}, Metrics: http.NotFoundHandler(), Attribution: page, Debug: c.open}).ServeHTTP(w, r)
		if w.Code != c.want || (w.Body.String() == "whose") != (c.want == 200) {
			t.Errorf("from %s to %s, open %v: %d %q, want %d", c.from, c.host, c.open, w.Code, w.Body, c.want)
		}
	}
}
