package web

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

type feed struct {
	started   bool
	stuck     []string
	sources   []snapshot.SourceHealth
	devices   []snapshot.Device
	lifecycle *fakeLifecycle
}

func (f feed) Snapshot(context.Context) *snapshot.Snapshot {
	return &snapshot.Snapshot{Devices: f.devices}
}
func (f feed) Sources() []snapshot.SourceHealth { return f.sources }
func (f feed) Started() bool                    { return f.started }
func (f feed) Stuck() []string                  { return f.stuck }
func (f feed) Released() snapshot.Release {
	if f.lifecycle == nil {
		return snapshot.Release{}
	}
	return f.lifecycle.released
}
func (f feed) Release(ctx context.Context, d time.Duration) error { return f.lifecycle.release(ctx, d) }
func (f feed) Acquire()                                           { f.lifecycle.acquired++ }

func get(t *testing.T, f feed, path string) *httptest.ResponseRecorder {
	t.Helper()
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the metrics") }) //nolint:errcheck // a recorder
	w := httptest.NewRecorder()
	NewHandler(Config{Feed: f, Metrics: metrics, Version: "1.2.3"}).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

func TestReady(t *testing.T) {
	sources := []snapshot.SourceHealth{
		{Name: "nvml", State: telemetry.SourceStateFailed, Err: "driver/library version mismatch"},
		{Name: "sim", State: telemetry.SourceStateServing, Devices: 8},
		{Name: "host", State: telemetry.SourceStateAbsent, Err: "no such hardware"}, // no reason to look
	}
	for _, c := range []struct {
		started bool
		code    int
		status  string
		reasons string
	}{
		{false, 503, "starting", "sources are being opened; nvml: driver/library version mismatch"},
		{true, 200, "ready", "nvml: driver/library version mismatch"},
	} {
		w := get(t, feed{started: c.started, sources: sources}, "/readyz")
		var h health
		if err := json.Unmarshal(w.Body.Bytes(), &h); err != nil {
			t.Fatal(err)
		}
		if w.Code != c.code || h.Status != c.status || strings.Join(h.Reasons, "; ") != c.reasons || len(h.Sources) != 3 || h.Sources[1].Devices != 8 {
			t.Errorf("started %v: %d %s", c.started, w.Code, w.Body)
		}
		if got := w.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("content type %s", got)
		}
	}
}

func TestHealthNeverDependsOnDevices(t *testing.T) {
	if w := get(t, feed{}, "/healthz"); w.Code != 200 || !strings.Contains(w.Body.String(), `"ok"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A liveness probe restarts an exporter that no longer completes snapshots.
func TestHealth_FailsWhileTheFeedIsStuck(t *testing.T) {
	w := get(t, feed{stuck: []string{"stage attribution has been running for 2m0s"}}, "/healthz")
	var h health
	if err := json.Unmarshal(w.Body.Bytes(), &h); err != nil {
		t.Fatal(err)
	}
	if w.Code != 503 || h.Status != "stuck" || len(h.Reasons) != 1 || !strings.Contains(h.Reasons[0], "attribution") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestRoutes(t *testing.T) {
	if w := get(t, feed{}, "/metrics"); w.Body.String() != "the metrics" {
		t.Errorf("metrics: %s", w.Body)
	}
	if w := get(t, feed{}, "/nothing"); w.Code != 404 {
		t.Errorf("an unknown path: %d", w.Code)
	}
	for method, want := range map[string]int{"HEAD": 200, "POST": 405, "DELETE": 405} {
		w := httptest.NewRecorder()
		NewHandler(Config{Feed: feed{}, Metrics: http.NotFoundHandler()}).ServeHTTP(w, httptest.NewRequest(method, "/healthz", nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", method, w.Code, want)
		}
	}
}

// pipes is a listener whose connections have no buffer: what is not read is not written.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A client that asks and then does not read is let go, and so is one that does not finish asking.
func TestSlowClientsAreLetGo(t *testing.T) {
	for name, c := range map[string]struct {
		request string
		within  time.Duration
	}{
		"does not read":           {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 2 * time.Minute},
		"does not finish asking":  {"GET / HTTP/1.1\r\nHost:", 15 * time.Second},
		"does not send its body":  {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", 2 * time.Minute},
		"asks for nothing at all": {"", 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)    //nolint:errcheck // it is the client's fault
					w.Write(make([]byte, 256<<10)) //nolint:errcheck // it is the client's fault
				})
				server := newServer(h, NewLimits(slog.New(slog.DiscardHandler)))
				listener := make(pipes)
				go server.Serve(listener) //nolint:errcheck // it ends with the listener
				here, there := net.Pipe()
				gone := &closing{Conn: there, at: make(chan time.Time, 1)}
				start := time.Now()
				listener <- gone
				go io.WriteString(here, c.request) //nolint:errcheck // some of it is not read
				select {
				case at := <-gone.at:
					if after := at.Sub(start); after > c.within {
						t.Errorf("let go after %v", after)
					}
				case <-time.After(time.Hour):
					t.Error("held for an hour")
				}
				here.Close() //nolint:errcheck // a pipe
				close(listener)
			})
		})
	}
}

// closing tells when the server closes a connection.
type closing struct {
	net.Conn
	at chan time.Time
}

func (c *closing) Close() error {
	select {
	case c.at <- time.Now():
	default:
	}
	return c.Conn.Close()
}

func TestLanding(t *testing.T) {
	id := &telemetry.Identity{UUID: "GPU-1", Model: `<script>alert("x")</script>`, Vendor: "nvidia"}
	d := snapshot.Device{Identity: id, Labels: id.Labels(), Owned: telemetry.OwnerAttributes{ProcessUnit: "ollama.service"}.Labels()}
	d.Read.Power.Draw.Set(412.4)
	d.Read.Presence.State[telemetry.StateOK].Set(1)
	page := get(t, feed{devices: []snapshot.Device{d}}, "/").Body.String()
	for _, want := range []string{"1.2.3", "412 W", "–", "GPU-1", "<td>ok", "<td>ollama.service", "&lt;script&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "<script>") {
		t.Error("a model's name is not escaped")
	}
	if !strings.Contains(get(t, feed{}, "/").Body.String(), "No accelerator") {
		t.Error("a page without devices must say so")
	}
}

// One client that fails TLS handshakes again and again does not fill the log.
func TestServer_ErrorLogIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		server := newServer(http.NotFoundHandler(), NewLimits(slog.New(slog.NewTextHandler(&logs, nil))))
		for i := range 100 {
			server.ErrorLog.Printf("http: TLS handshake error from 10.0.0.1:%d: EOF", i+1)
		}
		if n := strings.Count(logs.String(), "\n"); n == 0 || n > 10 {
			t.Errorf("%d lines", n)
		}
	})
}

func TestServeUntilTold(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close() //nolint:errcheck // only its port was wanted
	var answered atomic.Bool
	slow := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel() // told to stop while a request is in flight
		time.Sleep(50 * time.Millisecond)
		answered.Store(true)
		io.WriteString(w, "whole") //nolint:errcheck // read below
	})
	done := make(chan error)
	go func() {
		err := Serve(ctx, Handlers{Network: slow}, Listen{Addresses: []string{address}}, slog.New(slog.DiscardHandler))
		if !answered.Load() {
			t.Error("Serve did not wait for the request in flight")
		}
		done <- err
	}()
	var body []byte
	for range 100 {
		response, err := http.Get("http://" + address)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		body, err = io.ReadAll(response.Body)
		response.Body.Close() //nolint:errcheck // read
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if string(body) != "whole" {
		t.Errorf("the request in flight got %q", body)
	}
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
	bad := Serve(context.Background(), Handlers{Network: slow}, Listen{Addresses: []string{"256.0.0.1:1"}}, slog.New(slog.DiscardHandler))
	if bad == nil || !strings.Contains(bad.Error(), "256.0.0.1:1") {
		t.Errorf("a bad address: %v", bad)
	}
}
