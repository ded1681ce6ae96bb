package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gpumeter/gpumeter/exporter/doctor"
)

// mostReport bounds what is read of another exporter's report, bytes.
const mostReport = 64 << 20

// errNoReport is a response that is something else.
var errNoReport = errors.New("the response is not a report of gpumeter")

// consult fetches the report of a running exporter, over HTTP or, with unix:///path, from its admin socket.
// Redirects are not followed: a password in the URL is for the server it names. No error has the password.
func consult(ctx context.Context, address string) (r doctor.Report, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client, at, err := exporterAt(address)
	if err != nil {
		return r, fmt.Errorf("--url: %w", err)
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath("debug/attribution").String()+"?format=json", nil)
	if err != nil {
		return r, fmt.Errorf("--url: %w", err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return r, fmt.Errorf("--url: %w", err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	shown := at.Redacted()
	if to := answer.Header.Get("Location"); answer.StatusCode/100 == 3 && to != "" {
		return r, fmt.Errorf("--url: %s redirects (%d) to %.200q, which is not followed; use the URL of the exporter itself", shown, answer.StatusCode, to)
	}
	if answer.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 512))
		return r, fmt.Errorf("--url: %s returned %s: %s", shown, answer.Status, strings.TrimSpace(string(said)))
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, mostReport)).Decode(&r); err != nil {
		return r, fmt.Errorf("--url: %s: %w: %w", shown, errNoReport, err)
	}
	return r, nil
}

// exporterAt returns a client for the exporter at an address, and its base URL.
func exporterAt(address string) (*http.Client, *url.URL, error) {
	at, err := url.Parse(address)
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		return nil, nil, fmt.Errorf("invalid URL: %w", wrong.Err) // without the URL, which may have a password
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if at.Scheme != "unix" {
		return client, at, nil
	}
	path := at.Path
	if at.Host != "" || path == "" {
		return nil, nil, fmt.Errorf("%q is not like unix:///run/gpumeter.sock", address)
	}
	client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	return client, &url.URL{Scheme: "http", Host: "localhost"}, nil
}
