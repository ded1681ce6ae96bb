package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// releasePatience is how long a request waits for drivers to be let go of; the server's own time
// for an answer is longer.
const releasePatience = 10 * time.Second

// lifecycle is the answer of /-/release and /-/acquire.
type lifecycle struct {
	Status    string     `json:"status"`
	Until     *time.Time `json:"until,omitempty"`
	Sources   []string   `json:"sources,omitempty"`
	Devices   []string   `json:"devices,omitempty"`
	StillHeld []string   `json:"still_held,omitempty"`
	Reasons   []string   `json:"reasons,omitempty"`
}

// lifecycle adds the endpoints that let go of the devices and take them back.
func (c Config) lifecycle(mux *http.ServeMux) {
	for path, h := range map[string]http.HandlerFunc{"/-/release": c.release, "/-/acquire": c.acquire} {
		if !c.Lifecycle {
			mux.HandleFunc(path, lifecycleOff)
			continue
		}
		guarded := http.NewCrossOriginProtection().Handler(h) // a page in somebody's browser is not to do it
		mux.Handle("POST "+path, guarded)
		mux.Handle("PUT "+path, guarded)
	}
}

func lifecycleOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	io.WriteString(w, "Releasing devices over HTTP is off; --web.enable-lifecycle puts it on. The signals SIGUSR1 and SIGUSR2 do the same.\n") //nolint:errcheck // the client has gone
}

func (c Config) release(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<10)
	var d time.Duration
	if text := r.FormValue("for"); text != "" {
		var err error
		if d, err = time.ParseDuration(text); err != nil || d <= 0 || d > snapshot.MaxRelease {
			answer(w, http.StatusBadRequest, lifecycle{Status: "refused", Reasons: []string{
				fmt.Sprintf("for: %.40q is no time such as 15m, above 0 and at most %v", text, snapshot.MaxRelease)}})
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), releasePatience)
	defer cancel()
	err := c.Feed.Release(ctx, d)
	said := c.Feed.Released()
	a, code := lifecycle{Status: "released", Sources: said.Sources, Devices: said.Devices, StillHeld: said.Holding}, http.StatusOK
	if !said.Until.IsZero() {
		a.Until = &said.Until
	}
	switch {
	case errors.Is(err, snapshot.ErrHeld):
		a.Status, code = "held", http.StatusGatewayTimeout
	case err != nil:
		a.Status, code = "refused", http.StatusBadRequest
	}
	if err != nil {
		a.Reasons = []string{err.Error()}
	}
	answer(w, code, a)
}

func (c Config) acquire(w http.ResponseWriter, _ *http.Request) {
	c.Feed.Acquire()
	answer(w, http.StatusOK, lifecycle{Status: "acquired"})
}

// releaseNotice says for people that devices are released; it is empty when they are not.
func releaseNotice(r snapshot.Release) string {
	if r.Until.IsZero() {
		return ""
	}
	return "the devices are released until " + r.Until.Format(time.RFC3339)
}
