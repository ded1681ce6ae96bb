package prom

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

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
	index    map[string]int // of Descs, by Prometheus name
	process  *Process
	pages    [formats]sync.Pool // of *page; what is idle is freed by the garbage collector
	families *expose.Families
	gates    Gates
}

// Gate bounds how many pages are written at once; a limit.Gate is one.
type Gate interface {
	// Enter returns what the page is to be written to, and what to call after it, or has refused the request.
	Enter(http.ResponseWriter, *http.Request) (out http.ResponseWriter, leave func(), ok bool)
}

// Gates bound the pages that are written at once: each takes a buffer, and a compressed one a megabyte. Nil
// gates bound nothing.
type Gates struct{ Plain, Compressed Gate }

// of returns the gate of pages with an encoding; nil: there is none.
func (g Gates) of(encoding string) Gate {
	if encoding == "" {
		return g.Plain
	}
	return g.Compressed
}

// NewHandler returns a handler that serves those families of the feed's snapshots, and the
// process' own series when process is not nil.
func NewHandler(feed Feed, families *expose.Families, process *Process, gates Gates) *Handler {
	h := &Handler{feed: feed, families: families, process: process, gates: gates, index: map[string]int{}}
	for i, d := range families.Descs {
		h.index[d.Prom] = i
	}
	for f := range h.pages {
		l := newLayout(families, Format(f))
		h.pages[f].New = func() any { return newPage(l) }
	}
	return h
}

// accepted are the formats offered. Protobuf in text form, which only people read, is not.
func accepted() []expfmt.Format {
	return []expfmt.Format{expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtProtoDelim, expfmt.FmtText}
}

// ServeHTTP answers with what is known by the scraper's deadline, with status 200. A query that cannot be
// read is refused with 400: the names of name[] in it are not known.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	only, err := h.choose(r.URL.RawQuery)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := deadline(r)
	defer cancel()
	s := h.feed.Snapshot(ctx) // before the gate: waiting for a device takes no seat
	coding := encoding(strings.Join(r.Header.Values("Accept-Encoding"), ","))
	if gate := h.gates.of(coding); gate != nil {
		out, leave, ok := gate.Enter(w, r)
		if !ok {
			return
		}
		defer leave()
		w = out
	}
	chosen := expfmt.NegotiateAccept(r.Header, accepted()...)
	format := formatOf(chosen)
	header := w.Header()
	header.Set("Content-Type", string(chosen))
	header.Set("Vary", "Accept, Accept-Encoding")
	p := h.pages[format].Get().(*page)
	defer h.pages[format].Put(p)
	out, finish := p.compress(w, coding)
	if p.write(out, s, h.process, only) == nil { // else the scraper has gone: nothing is left to say to it
		finish()
	}
}

// choice is which metrics a request names; nil: all.
type choice struct {
	names  map[string]bool
	wanted []bool // by index in Descs
}

// choose reads the parameters name[] of a query.
func (h *Handler) choose(query string) (*choice, error) {
	if query == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("malformed query: %w", err)
	}
	names, ok := values["name[]"]
	if !ok {
		return nil, nil
	}
	c := &choice{names: map[string]bool{}, wanted: make([]bool, len(h.families.Descs))}
	for _, name := range names {
		c.names[name] = true
		if i, ok := h.index[name]; ok {
			c.wanted[i] = true
		}
	}
	return c, nil
}

// has reports whether the family of that name is wanted.
func (c *choice) has(name string) bool { return c == nil || c.names[name] }

// indices returns which of Descs are wanted; nil: all.
func (c *choice) indices() []bool {
	if c == nil {
		return nil
	}
	return c.wanted
}

func formatOf(f expfmt.Format) Format {
	switch f.FormatType() {
	case expfmt.TypeProtoDelim:
		return Protobuf
	case expfmt.TypeOpenMetrics:
		return OpenMetrics
	}
	return Text
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

// write writes a whole page.
func (p *page) write(w io.Writer, s *snapshot.Snapshot, process *Process, only *choice) error {
	if err := p.encoder.encode(w, s, only.indices()); err != nil {
		return err
	}
	if process != nil {
		if err := process.write(w, p.format, only); err != nil {
			return err
		}
	}
	if p.format == OpenMetrics {
		_, err := io.WriteString(w, "# EOF\n")
		return err
	}
	return nil
}
