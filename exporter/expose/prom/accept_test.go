package prom

import (
	"net/http/httptest"
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
