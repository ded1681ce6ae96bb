package web

import (
	"log/slog"

	"github.com/gpumeter/gpumeter/exporter/expose/prom"
	"github.com/gpumeter/gpumeter/exporter/web/limit"
)

// What all clients together may take. With all of it taken, the exporter stays below 64 MiB (test/e2e).
const (
	mostConnections = 256 // or 64 with TLS
	mostPlain       = 16  // pages written at once without compression: 70 KB each
	mostCompressed  = 4   // and with compression: 1 to 2 MB each
	mostPages       = 8   // other pages at once
	mostWaiting     = 256 // requests that wait for any of these
	mostStreams     = 8   // requests at once on an HTTP/2 connection
	mostHeader      = 16 << 10
)

// Limits bound what clients can take of the exporter.
type Limits struct {
	connections              *limit.Connections
	plain, compressed, pages *limit.Gate
	log                      *slog.Logger // for what clients cause
}

// NewLimits returns limits whose log lines go to a logger.
func NewLimits(log *slog.Logger) *Limits {
	relief := new(limit.Relief)
	limited := slog.New(limit.NewLog(log.Handler()))
	turned := func(address string) { limited.Warn("request refused: too many at once", "client", address) }
	return &Limits{
		connections: limit.NewConnections(mostConnections, relief),
		plain:       limit.NewGate(mostPlain, mostWaiting, relief, turned),
		compressed:  limit.NewGate(mostCompressed, mostWaiting, relief, turned),
		pages:       limit.NewGate(mostPages, mostWaiting, relief, turned),
		log:         limited,
	}
}

// Scrapes returns the limits of pages of metrics.
func (l *Limits) Scrapes() prom.Gates { return prom.Gates{Plain: l.plain, Compressed: l.compressed} }
