package prom

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A header may come in several lines, which mean the same as one.
func TestAcceptEncodingInLines(t *testing.T) {
	h := handler(node(1))
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header["Accept-Encoding"] = []string{"br", "gzip"}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if got := w.Header().Get("Content-Encoding"); got != "gzip" {
		t.Errorf("Content-Encoding %q", got)
	}
}

// A query that cannot be read is refused, rather than answered with the whole page.
func TestMalformedQueryIsRefused(t *testing.T) {
	for _, query := range []string{"name[]=%zz", "name[]=gpu_up;x=1", strings.Repeat("x=1&", 10_001)} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.URL.RawQuery = query
		handler(node(1)).ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "malformed query") {
			t.Errorf("%.20s: %d %.40s", query, w.Code, w.Body)
		}
	}
}
