package prom

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// Feed gives snapshots; a snapshot.Feed is one.
type Feed interface {
	Snapshot(context.Context) *snapshot.Snapshot
}

// Handler answers scrapes.
type Handler struct {
	feed     Feed
	families *expose.Families
	process  *Process
	accepted []expfmt.Format
	pages    [2]sync.Pool // of *page, by Format
	gathers  sync.Pool    // of *gathering
	log      promhttp.Logger
}

// NewHandler returns a handler that serves those families of the feed's snapshots, and the
// process' own series when process is not nil.
func NewHandler(feed Feed, families *expose.Families, process *Process, log promhttp.Logger) *Handler {
	h := &Handler{feed: feed, families: families, process: process, accepted: expfmt.DefaultOpenMetricsAcceptedFormats(), log: log}
	for f := range h.pages {
		h.pages[f].New = func() any { return newPage(families, Format(f)) }
	}
	h.gathers.New = func() any { return newGathering(families) }
	return h
}

// ServeHTTP answers with what is known by the scraper's deadline, always with status 200.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := deadline(r)
	defer cancel()
	s := h.feed.Snapshot(ctx)
	chosen := expfmt.NegotiateAccept(r.Header, h.accepted...)
	format, streamed := formatOf(chosen)
	if !streamed || r.URL.RawQuery != "" && r.URL.Query().Has("name[]") {
		h.gather(w, r, s)
		return
	}
	header := w.Header()
	header.Set("Content-Type", string(chosen))
	header.Set("Vary", "Accept, Accept-Encoding")
	p := h.pages[format].Get().(*page)
	defer h.pages[format].Put(p)
	out, finish := p.compress(w, encoding(strings.Join(r.Header.Values("Accept-Encoding"), ",")))
	if p.write(out, s, h.process) == nil { // else the scraper has gone: nothing is left to say to it
		finish()
	}
}

// gather serves what the streamed path does not: protobuf, and a choice of names.
func (h *Handler) gather(w http.ResponseWriter, r *http.Request, s *snapshot.Snapshot) {
	g := h.gathers.Get().(*gathering)
	defer h.gathers.Put(g)
	promhttp.HandlerForTransactional(transaction{g, s, h.process}, promhttp.HandlerOpts{
		EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError, ErrorLog: h.log,
	}).ServeHTTP(w, r)
}

func formatOf(f expfmt.Format) (Format, bool) {
	switch f.FormatType() {
	case expfmt.TypeTextPlain:
		return Text, true
	case expfmt.TypeOpenMetrics:
		return OpenMetrics, true
	}
	return 0, false
}

// deadline is a little before the scraper gives up, as it says in its header.
func deadline(r *http.Request) (context.Context, context.CancelFunc) {
	seconds, err := strconv.ParseFloat(r.Header.Get("X-Prometheus-Scrape-Timeout-Seconds"), 64)
	if err != nil || !(seconds > 0 && seconds < 3600) {
		return context.WithCancel(r.Context())
	}
	timeout := time.Duration(seconds * float64(time.Second))
	return context.WithTimeout(r.Context(), timeout-min(timeout/10, 250*time.Millisecond))
}

// page is what writing one page needs, kept between scrapes.
type page struct {
	encoder *Encoder
	format  Format
	gzip    *gzip.Writer
	zstd    *zstd.Encoder
}

func newPage(families *expose.Families, format Format) *page {
	gz, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // fails on an unknown level only
	return &page{encoder: NewEncoder(families, format), format: format, gzip: gz}
}

// compress returns the writer for an encoding, and what to call after the last byte.
func (p *page) compress(w http.ResponseWriter, encoding string) (io.Writer, func()) {
	switch encoding {
	case "gzip":
		w.Header().Set("Content-Encoding", "gzip")
		p.gzip.Reset(w)
		return p.gzip, func() { p.gzip.Close() } //nolint:errcheck // the scraper has gone
	case "zstd":
		w.Header().Set("Content-Encoding", "zstd")
		if p.zstd == nil { // few scrapers ask for it
			p.zstd, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), // fails on bad options only
				zstd.WithWindowSize(512<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderConcurrency(1))
		}
		p.zstd.Reset(w)
		return p.zstd, func() { p.zstd.Close() } //nolint:errcheck // the scraper has gone
	}
	return w, func() {}
}

// write writes a whole page.
func (p *page) write(w io.Writer, s *snapshot.Snapshot, process *Process) error {
	if err := p.encoder.Encode(w, s); err != nil {
		return err
	}
	if process != nil {
		if _, err := w.Write(process.text(p.format)); err != nil {
			return err
		}
	}
	if p.format == OpenMetrics {
		_, err := io.WriteString(w, "# EOF\n")
		return err
	}
	return nil
}
