package prom

import (
	"io"
	"net/http"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// page is what writing one page needs. It is kept between scrapes.
type page struct {
	encoder encoder
	format  Format
	gzip    *gzip.Writer  // nil before the first page in gzip: it takes a megabyte
	zstd    *zstd.Encoder // nil before the first page in zstd
}

func newPage(l *layout) *page { return &page{encoder: newEncoder(l), format: l.format} }

// compress returns the writer for an encoding, and what to call after the last byte.
func (p *page) compress(w http.ResponseWriter, encoding string) (io.Writer, func()) {
	switch encoding {
	case "gzip":
		w.Header().Set("Content-Encoding", "gzip")
		if p.gzip == nil {
			p.gzip, _ = gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // fails on an unknown level only
		}
		p.gzip.Reset(w)
		return p.gzip, func() { p.gzip.Close() } //nolint:errcheck // the scraper has gone
	case "zstd":
		w.Header().Set("Content-Encoding", "zstd")
		if p.zstd == nil {
			p.zstd, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), // fails on bad options only
				zstd.WithWindowSize(512<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderConcurrency(1))
		}
		p.zstd.Reset(w)
		return p.zstd, func() { p.zstd.Close() } //nolint:errcheck // the scraper has gone
	}
	return w, func() {}
}
