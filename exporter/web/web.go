// Package web is the HTTP server: metrics, health, a landing page and, when wanted, the lifecycle.
package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

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
	// Hosts are the names of this machine. Requests to release devices must be addressed to one of them, to
	// localhost or to an IP address.
	Hosts  []string
	Limits *Limits      // nil: of its own
	Logger *slog.Logger // nil: nothing is logged
}

// Handlers are the routes, as clients of the network and of the admin socket see them.
type Handlers struct{ Network, Admin http.Handler }

// NewHandler returns the routes for clients of the network.
func NewHandler(c Config) http.Handler { return NewHandlers(c).Network }

// NewHandlers returns the routes.
func NewHandlers(c Config) Handlers {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Limits == nil {
		c.Limits = NewLimits(c.Logger)
	}
	return Handlers{Network: c.Limits.connections.Handler(c.routes(false)), Admin: c.routes(true)}
}

// routes returns the routes. To the admin socket, which only its owner can open, all of them are open.
func (c Config) routes(admin bool) http.Handler {
	mux := http.NewServeMux()
	pages := c.Limits.pages.Handler
	mux.Handle("GET /metrics", c.Metrics)
	mux.HandleFunc("GET /healthz", c.healthz)
	mux.HandleFunc("GET /readyz", c.readyz)
	mux.Handle("GET /{$}", pages(http.HandlerFunc(c.landing)))
	mux.Handle("GET /debug/attribution", c.debug(c.Attribution, admin, pages))
	c.lifecycle(mux, admin)
	return mux
}
