package limit

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lines is a log that is written and read at once.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

// Lines of one client are limited within a minute and counted; those of others and of the exporter go on.
func TestLog_LimitsLinesPerClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		log := slog.New(NewLog(slog.NewTextHandler(&out, nil)))
		plain := slog.NewLogLogger(log.Handler(), slog.LevelWarn)
		for i := range 1000 {
			plain.Printf("http: TLS handshake error from 10.0.0.1:%d: EOF", i+1)
			log.With("a", 1).Warn("request refused", "client", fmt.Sprintf("[2001:db8::1]:%d", i+1))
		}
		plain.Print("http: panic serving 10.0.0.2:1: oops\nstack of 10.0.0.3:1")
		log.Info("listening", "address", "10.0.0.1:9450")
		if n := strings.Count(out.String(), "handshake"); n != linesPerClient {
			t.Errorf("%d lines of one client", n)
		}
		if n := strings.Count(out.String(), "request refused"); n != linesPerClient {
			t.Errorf("%d lines of the other client", n)
		}
		if !strings.Contains(out.String(), "panic serving 10.0.0.2") || !strings.Contains(out.String(), "listening") {
			t.Errorf("a line of others is missing:\n%s", out.String())
		}
		out.Reset()
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if want := fmt.Sprintf("lines=%d", 2*(1000-linesPerClient)); !strings.Contains(out.String(), want) {
			t.Errorf("%q, want %s", out.String(), want)
		}
		out.Reset()
		plain.Print("http: TLS handshake error from 10.0.0.1:1: EOF")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := strings.Count(out.String(), "\n"); n != 1 {
			t.Errorf("the next minute: %s", out.String())
		}
	})
}

// However many clients there are, a minute has 50 lines.
func TestLog_LimitsLinesOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		l := NewLog(slog.NewTextHandler(&out, nil))
		for i := range 10_000 {
			slog.New(l).Warn("request refused", "client", fmt.Sprintf("10.0.%d.%d:1", i/256, i%256))
		}
		if n := strings.Count(out.String(), "\n"); n != linesPerMinute {
			t.Errorf("%d lines", n)
		}
		l.mu.Lock()
		if n := len(l.clients); n > mostClients+1 {
			t.Errorf("%d clients are told apart", n)
		}
		l.mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
	})
}
