// Package web is the HTTP server: metrics, health, a landing page and, when wanted, the lifecycle.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// Feed is what the pages are made of; a snapshot.Feed is one.
type Feed interface {
	Snapshot(context.Context) *snapshot.Snapshot
	Sources() []snapshot.SourceHealth
	Started() bool
	Stuck() []string
	Released() snapshot.Release
	Release(context.Context, time.Duration) error
	Acquire()
}

// Config says what is served.
type Config struct {
	Feed    Feed
	Metrics http.Handler // answers /metrics
	// Attribution answers /debug/attribution: this machine alone, unless Debug.
	Attribution http.Handler
	Version     string
	Lifecycle   bool // /-/release and /-/acquire are answered
	Debug       bool // debug endpoints answer other machines too
}

// NewHandler returns the routes.
func NewHandler(c Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", c.Metrics)
	mux.HandleFunc("GET /healthz", c.healthz)
	mux.HandleFunc("GET /readyz", c.readyz)
	mux.HandleFunc("GET /{$}", c.landing)
	mux.Handle("GET /debug/attribution", c.debug(c.Attribution))
	c.lifecycle(mux)
	return mux
}

// Listen says where to listen, and with which certificates and passwords.
type Listen struct {
	Addresses     []string
	SystemdSocket bool
	ConfigFile    string        // of the exporter toolkit
	Grace         time.Duration // for requests in flight at the end; default 4 s
	// Opened is called with the URL of each address once it is listened on; nil: it is not.
	Opened func(url string)
}

// Serve answers until the context ends, and then lets requests in flight finish.
func Serve(ctx context.Context, h http.Handler, l Listen, log *slog.Logger) error {
	server := newServer(h, log)
	if l.Opened != nil {
		server.BaseContext = func(n net.Listener) context.Context {
			l.Opened(address(n))
			return context.Background()
		}
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(l.Grace, 4*time.Second))
		defer cancel()
		if err := server.Shutdown(grace); err != nil {
			log.Warn("requests were cut off", "err", err)
		}
	})
	err := toolkit.ListenAndServe(server, &toolkit.FlagConfig{
		WebListenAddresses: &l.Addresses, WebSystemdSocket: &l.SystemdSocket, WebConfigFile: &l.ConfigFile,
	}, log)
	if !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("listen on %v: %w", l.Addresses, err)
	}
	<-stopped
	return nil
}

// newServer returns a server no client can hold on to for ever: each request costs a goroutine and
// a page's buffers until it is answered.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      time.Minute,     // longer than any sensible scrape timeout
		IdleTimeout:       5 * time.Minute, // longer than any sensible scrape interval
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
