package doctor

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// Handler serves the report as text, or as JSON to requests with ?format=json or that accept JSON.
func Handler(report func(context.Context) Report) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := report(r.Context())
		if r.FormValue("format") == "json" || strings.Contains(r.Header.Get("Accept"), "application/json") {
			w.Header().Set("Content-Type", "application/json")
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			e.Encode(said) //nolint:errcheck // the client has gone
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		said.Text(w) //nolint:errcheck // the client has gone
	})
}
