package web

import (
	"encoding/json"
	"net/http"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// health is the answer of /healthz and /readyz.
type health struct {
	Status  string         `json:"status"`
	Reasons []string       `json:"reasons,omitempty"`
	Sources []sourceHealth `json:"sources,omitempty"`
}

type sourceHealth struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Devices int    `json:"devices"`
	Reason  string `json:"reason,omitempty"`
}

// healthz reports whether the exporter completes snapshots. It fails when only a restart helps, so that a
// liveness probe restarts the exporter. A device, a kubelet or a disk that hangs does not make it fail.
func (c Config) healthz(w http.ResponseWriter, _ *http.Request) {
	if why := c.Feed.Stuck(); len(why) > 0 {
		answer(w, http.StatusServiceUnavailable, health{Status: "stuck", Reasons: why})
		return
	}
	answer(w, http.StatusOK, health{Status: "ok"})
}

// readyz says whether every source has been tried, and how each is. A source that fails is a
// reason to look, not to take the exporter out of the scrape.
func (c Config) readyz(w http.ResponseWriter, _ *http.Request) {
	h, code := health{Status: "ready"}, http.StatusOK
	if !c.Feed.Started() {
		h.Status, code = "starting", http.StatusServiceUnavailable
		h.Reasons = append(h.Reasons, "sources are being opened")
	}
	if notice := releaseNotice(c.Feed.Released()); notice != "" {
		h.Reasons = append(h.Reasons, notice)
	}
	for _, s := range c.Feed.Sources() {
		h.Sources = append(h.Sources, sourceHealth{s.Name, s.State.String(), s.Devices, s.Err})
		if s.State == telemetry.SourceStateFailed {
			h.Reasons = append(h.Reasons, s.Name+": "+s.Err)
		}
	}
	answer(w, code, h)
}

func answer(w http.ResponseWriter, code int, said any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.Encode(said) //nolint:errcheck // the client has gone
}
