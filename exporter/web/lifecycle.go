package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
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

// lifecycle adds the endpoints that release the devices and acquire them. The admin socket always has them.
func (c Config) lifecycle(mux *http.ServeMux, admin bool) {
	for path, h := range map[string]http.HandlerFunc{"/-/release": c.release, "/-/acquire": c.acquire} {
		if !c.Lifecycle && !admin {
			mux.HandleFunc(path, lifecycleOff)
			continue
		}
		guarded := http.Handler(h)
		if !admin {
			guarded = c.direct(http.NewCrossOriginProtection().Handler(h)) // a page in somebody's browser is not to do it
		}
		mux.Handle("POST "+path, guarded)
		mux.Handle("PUT "+path, guarded)
	}
}

// direct refuses requests that a proxy passed on, and those for a host that is not this machine.
func (c Config) direct(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case forwarded(r):
			forbid(w, "Devices are not released for requests that a proxy passed on; use --web.admin-socket.")
		case !c.namesUs(r.Host):
			forbid(w, "The Host header does not name this machine; use an IP address of it, or set --web.lifecycle-host.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func lifecycleOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	io.WriteString(w, "Releasing devices over HTTP is off; --web.enable-lifecycle puts it on. The signals SIGUSR1 and SIGUSR2 do the same.\n") //nolint:errcheck // the client has gone
}

func (c Config) release(w http.ResponseWriter, r *http.Request) {
	form, err := form(w, r, "for")
	if err != nil {
		refuse(w, err)
		return
	}
	var d time.Duration
	if text := form.Get("for"); text != "" {
		if d, err = time.ParseDuration(text); err != nil || d <= 0 || d > snapshot.MaxRelease {
			refuse(w, fmt.Errorf("for: %.40q is no time such as 15m, above 0 and at most %v", text, snapshot.MaxRelease))
			return
		}
	}
	c.logRequest(r, "devices released on request", "for", cmp.Or(d, snapshot.DefaultRelease))
	ctx, cancel := context.WithTimeout(r.Context(), releasePatience)
	defer cancel()
	err = c.Feed.Release(ctx, d)
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

func (c Config) acquire(w http.ResponseWriter, r *http.Request) {
	if _, err := form(w, r); err != nil {
		refuse(w, err)
		return
	}
	c.logRequest(r, "devices acquired on request")
	c.Feed.Acquire()
	answer(w, http.StatusOK, lifecycle{Status: "acquired"})
}

// refuse answers with 400, and why.
func refuse(w http.ResponseWriter, why error) {
	answer(w, http.StatusBadRequest, lifecycle{Status: "refused", Reasons: []string{why.Error()}})
}

// mostForm bounds the body of a request, bytes.
const mostForm = 1 << 10

// form reads the parameters of a request, from its query and from its body. Anything that cannot be read, and
// any parameter that is not known or comes twice, is an error: devices must not be released for another time
// than was meant.
func form(w http.ResponseWriter, r *http.Request, known ...string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("malformed query: %w", err)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostForm))
	if err != nil {
		return nil, fmt.Errorf("cannot read the body: %w", err)
	}
	values := query
	if len(body) > 0 {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/x-www-form-urlencoded" || r.Header.Get("Content-Encoding") != "" {
			return nil, errors.New("the body is not application/x-www-form-urlencoded; parameters may be in the query")
		}
		sent, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, fmt.Errorf("malformed body: %w", err)
		}
		for name, all := range sent {
			values[name] = append(values[name], all...)
		}
	}
	for name, all := range values {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown parameter %.40q", name)
		}
		if len(all) > 1 {
			return nil, fmt.Errorf("parameter %.40q comes %d times", name, len(all))
		}
	}
	return values, nil
}

// logRequest logs who had something done: the client's address, or the user and process of the admin
// socket, and the user of basic authentication.
func (c Config) logRequest(r *http.Request, message string, args ...any) {
	from := r.RemoteAddr
	if p, ok := r.Context().Value(peerKey{}).(string); ok {
		from = "admin socket, " + p
	}
	args = append(args, "client", from)
	if user, _, ok := r.BasicAuth(); ok {
		args = append(args, "basic_auth_user", user[:min(len(user), 100)])
	}
	c.Logger.Info(message, args...)
}

// releaseNotice says for people that devices are released; it is empty when they are not.
func releaseNotice(r snapshot.Release) string {
	if r.Until.IsZero() {
		return ""
	}
	return "the devices are released until " + r.Until.Format(time.RFC3339)
}
