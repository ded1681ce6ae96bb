package limit

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Lines of a Log within a minute.
const (
	linesPerClient = 5
	linesPerMinute = 50
	mostClients    = 100 // that are told apart within a minute
)

// Log is a slog.Handler for what clients cause. Within a minute it passes on five lines of each client, and
// 50 of all; at the end of the minute one more line counts those that were left out.
type Log struct {
	next slog.Handler
	*window
}

// window counts the lines of a minute. The handlers that WithAttrs and WithGroup return share it.
type window struct {
	mu      sync.Mutex
	open    bool
	passed  int
	left    int // lines left out
	clients map[netip.Addr]int
}

// NewLog returns a limit in front of a handler.
func NewLog(next slog.Handler) *Log {
	return &Log{next, &window{clients: map[netip.Addr]int{}}}
}

// Enabled implements slog.Handler.
func (l *Log) Enabled(ctx context.Context, level slog.Level) bool { return l.next.Enabled(ctx, level) }

// WithAttrs implements slog.Handler.
func (l *Log) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Log{l.next.WithAttrs(attrs), l.window}
}

// WithGroup implements slog.Handler.
func (l *Log) WithGroup(name string) slog.Handler { return &Log{l.next.WithGroup(name), l.window} }

// Handle implements slog.Handler.
func (l *Log) Handle(ctx context.Context, r slog.Record) error {
	if !l.pass(culprit(r)) {
		return nil
	}
	return l.next.Handle(ctx, r)
}

// pass counts a line of a client, and reports whether it is passed on.
func (l *Log) pass(from netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		l.open = true
		time.AfterFunc(time.Minute, l.close)
	}
	if _, known := l.clients[from]; !known && len(l.clients) >= mostClients {
		from = netip.Addr{}
	}
	l.clients[from]++
	if from.IsValid() && l.clients[from] > linesPerClient || l.passed >= linesPerMinute {
		l.left++
		return false
	}
	l.passed++
	return true
}

// close ends the minute.
func (l *Log) close() {
	l.mu.Lock()
	left := l.left
	l.open, l.passed, l.left = false, 0, 0
	clear(l.clients)
	l.mu.Unlock()
	if left > 0 {
		slog.New(l.next).Warn("log lines about clients were left out in the last minute", "lines", left)
	}
}

// culprit returns the client that a line is about: its attribute client, or the address in the message of
// net/http. The zero value: none is named.
func culprit(r slog.Record) (from netip.Addr) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "client" {
			from = addressIn(a.Value.String())
		}
		return !from.IsValid()
	})
	if from.IsValid() {
		return from
	}
	line, _, _ := strings.Cut(r.Message, "\n") // the rest is the stack of a panic
	for word := range strings.FieldsSeq(line) {
		if from = addressIn(word); from.IsValid() {
			return from
		}
	}
	return from
}

// addressIn returns the IP address of a word such as 10.0.0.7:4711:
func addressIn(word string) netip.Addr {
	at, err := netip.ParseAddrPort(strings.TrimRight(word, ":,;"))
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}
