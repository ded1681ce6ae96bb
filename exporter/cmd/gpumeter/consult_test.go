package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/doctor"
)

// A redirect is an error, also to the same host; the password in the URL goes nowhere else and is in no error.
func TestConsult_FollowsNoRedirect(t *testing.T) {
	arrived := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- r.Header.Get("Authorization")
		w.Write([]byte("{}")) //nolint:errcheck // the client may have gone
	}))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	_, err := consult(t.Context(), strings.Replace(server.URL, "://", "://ada:secret@", 1))
	if err == nil || !strings.Contains(err.Error(), "redirects (307) to \""+other.URL) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	select {
	case a := <-arrived:
		t.Errorf("a request arrived elsewhere, Authorization %q", a)
	default:
	}
}

// No error has the password of the URL.
func TestConsult_PasswordIsInNoError(t *testing.T) {
	refused := httptest.NewServer(http.NotFoundHandler())
	defer refused.Close()
	garbage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<")) })) //nolint:errcheck // the client may have gone
	defer garbage.Close()
	for _, address := range []string{
		strings.Replace(refused.URL, "://", "://ada:secret@", 1),
		strings.Replace(garbage.URL, "://", "://ada:secret@", 1),
		"http://ada:secret@127.0.0.1:1", "http://ada:secret@[bad", "http://ada:secret@host:port", "ftp://ada:secret@host",
	} {
		if _, err := consult(t.Context(), address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// The report is fetched from a Unix socket, and an address that names none is refused.
func TestConsult_UnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: doctor.Handler(func(context.Context) doctor.Report { return doctor.Report{} })}}
	server.Start()
	defer server.Close()
	if _, err := consult(t.Context(), "unix://"+path); err != nil {
		t.Error(err)
	}
	for _, address := range []string{"unix://run/s", "unix://"} {
		if _, err := consult(t.Context(), address); err == nil || !strings.Contains(err.Error(), "unix:///run/gpumeter.sock") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := consult(t.Context(), "unix:///nope"); err == nil || !strings.Contains(err.Error(), "/nope") {
		t.Errorf("%v", err)
	}
}
