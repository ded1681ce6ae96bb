package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// adminServer serves an admin socket until the test ends it.
func adminServer(t *testing.T, path string, l *fakeLifecycle, log *slog.Logger) (end func(), err error) {
	t.Helper()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "owners") }) //nolint:errcheck // the test reads it
	h := NewHandlers(Config{Feed: feed{lifecycle: l}, Metrics: http.NotFoundHandler(), Attribution: page, Logger: log})
	ctx, cancel := context.WithCancel(t.Context())
	opened, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- Serve(ctx, h, Listen{Addresses: []string{"127.0.0.1:0"}, AdminSocket: path, Opened: func(url string) { opened <- url }}, slog.New(slog.DiscardHandler))
	}()
	select {
	case <-opened:
	case err := <-done:
		cancel()
		return nil, err
	}
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}, nil
}

// overSocket sends a request over a Unix socket.
func overSocket(path, method, url string) (int, string, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	r, err := http.NewRequest(method, "http://anything"+url, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close() //nolint:errcheck // read
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// The admin socket is its owner's alone. It releases and acquires without --web.enable-lifecycle, shows the
// debug page, logs the user, and is gone at the end.
func TestAdminSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gpumeter.sock")
	var logs bytes.Buffer
	l := new(fakeLifecycle)
	end, err := adminServer(t, path, l, slog.New(slog.NewTextHandler(&logs, nil)))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, c := range []struct{ method, url, want string }{
		{"POST", "/-/release?for=1h", `"released"`}, {"POST", "/-/acquire", `"acquired"`}, {"GET", "/debug/attribution", "owners"}, {"GET", "/healthz", "ok"},
	} {
		if code, body, err := overSocket(path, c.method, c.url); code != 200 || !strings.Contains(body, c.want) || err != nil {
			t.Errorf("%s: %d %s %v", c.url, code, body, err)
		}
	}
	end()
	if fmt.Sprint(l.asked) != "[1h0m0s]" || l.acquired != 1 {
		t.Errorf("released %v, acquired %d times", l.asked, l.acquired)
	}
	if want := fmt.Sprintf(`client="admin socket, uid %d pid %d"`, os.Getuid(), os.Getpid()); strings.Count(logs.String(), want) != 2 {
		t.Errorf("%s\nwant %s twice", logs.String(), want)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is still there")
	}
}

// A socket that nobody listens on is replaced; one that is in use, and any other file, is left alone.
func TestAdminSocket_ReplacesOnlyStale(t *testing.T) {
	dir := t.TempDir()
	stale, used, file := filepath.Join(dir, "stale"), filepath.Join(dir, "used"), filepath.Join(dir, "file")
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	old.Close() //nolint:errcheck // it leaves its socket, as a process that is killed does
	end, err := adminServer(t, stale, new(fakeLifecycle), nil)
	if err != nil {
		t.Fatal(err)
	}
	end()
	other, err := net.Listen("unix", used)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close() //nolint:errcheck // the test ends
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{used: "is in use by another process", file: "is no socket", filepath.Join(dir, "no", "such"): "no such file"} {
		_, err := adminServer(t, path, new(fakeLifecycle), nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--web.admin-socket") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if text, err := os.ReadFile(file); string(text) != "text" {
		t.Errorf("the file is %q, %v", text, err)
	}
	if c, err := net.DialTimeout("unix", used, time.Second); err != nil {
		t.Errorf("the other socket: %v", err)
	} else {
		c.Close() //nolint:errcheck // it was only tried
	}
}
