package web

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// passedOn are headers of proxies.
var passedOn = map[string]string{
	"Forwarded": "for=203.0.113.9", "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https", "X-Forwarded-Client-Cert": "x", "X-Real-Ip": "203.0.113.9", "Via": "1.1 proxy",
}

// What a proxy on this machine passes on comes from elsewhere.
func TestForwardedRequestsAreRefused(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "owners") }) //nolint:errcheck // a recorder takes all
	for name, value := range passedOn {
		l := new(fakeLifecycle)
		h := NewHandler(Config{Feed: feed{lifecycle: l}, Metrics: http.NotFoundHandler(), Attribution: page, Lifecycle: true})
		for method, paths := range map[string][]string{"GET": {"/debug/attribution"}, "POST": {"/-/release", "/-/acquire"}} {
			for _, path := range paths {
				r := httptest.NewRequest(method, path, nil)
				r.RemoteAddr, r.Host = "127.0.0.1:4711", "localhost:9450"
				r.Header.Set(name, value)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "proxy") {
					t.Errorf("%s: %s: %d %s", name, path, w.Code, w.Body)
				}
			}
		}
		if l.asked != nil || l.acquired != 0 {
			t.Errorf("%s: released %v, acquired %d times", name, l.asked, l.acquired)
		}
	}
}

// A name that its owner's name server points to this machine releases no devices; a name of ours and an IP
// address do.
func TestLifecycle_ChecksHost(t *testing.T) {
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:9450": 200, "127.0.0.1:9450": 200, "[::1]:9450": 200, "[2001:db8::1]": 200, "10.0.0.7:9450": 200,
		"node-1": 200, "node-1:9450": 200, "Node-1.example.com": 200,
		"evil.example": 403, "evil.example:9450": 403, "node-1.evil.example": 403, "127.0.0.1.evil.example": 403, "": 403, "node-1.": 403,
	} {
		for _, path := range []string{"/-/release", "/-/acquire"} {
			l := new(fakeLifecycle)
			r := httptest.NewRequest("POST", path, nil)
			r.Host = host
			r.Header.Set("Origin", "http://"+host) // of the page that was rebound
			w := httptest.NewRecorder()
			NewHandler(Config{Feed: feed{lifecycle: l}, Metrics: http.NotFoundHandler(), Lifecycle: true, Hosts: []string{"", "node-1", "node-1.example.com"}}).ServeHTTP(w, r)
			if w.Code != want || len(l.asked)+l.acquired != map[int]int{200: 1}[want] {
				t.Errorf("%s of %q: %d, want %d\n%s", path, host, w.Code, want, w.Body)
			}
		}
	}
}

// A request that cannot be read is refused, and nothing is released for another time than was meant.
func TestLifecycle_RefusesWhatItCannotRead(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct {
		query, kind, encoding, body string
		want                        int
	}{
		{"", form, "", "for=1h", 200},
		{"", form + "; charset=utf-8", "", "for=1h", 200},
		{"?for=1h", "", "", "", 200},
		{"", "application/json", "", `{"for":"1h"}`, 400},
		{"", "", "", "for=1h", 400},
		{"", "multipart/form-data; boundary=x", "", "--x\r\n", 400},
		{"", form, "gzip", "\x1f\x8b", 400},
		{"", form, "", "for=" + strings.Repeat("1", 5000), 400},
		{"", form, "", "for=%zz", 400},
		{"", form, "", "for=1h;x", 400},
		{"?for=%zz", "", "", "", 400},
		{"?for=1h;for=2h", "", "", "", 400},
		{"?for=1h&for=2h", "", "", "", 400},
		{"?for=1h", form, "", "for=2h", 400},
		{"?fro=1h", "", "", "", 400},
	} {
		for _, path := range []string{"/-/release", "/-/acquire"} {
			want := c.want
			if path == "/-/acquire" {
				want = 400 // it has no parameter
			}
			l := new(fakeLifecycle)
			r := httptest.NewRequest("POST", path, strings.NewReader(c.body))
			r.Host = "localhost"
			r.URL.RawQuery = strings.TrimPrefix(c.query, "?")
			r.Header.Set("Content-Type", c.kind)
			r.Header.Set("Content-Encoding", c.encoding)
			w := httptest.NewRecorder()
			NewHandler(Config{Feed: feed{lifecycle: l}, Metrics: http.NotFoundHandler(), Lifecycle: true}).ServeHTTP(w, r)
			if w.Code != want || want == 400 && (l.asked != nil || l.acquired != 0) || want == 200 && l.asked[0].Hours() != 1 {
				t.Errorf("%s%s %s %.20q: %d, want %d; released %v\n%s", path, c.query, c.kind, c.body, w.Code, want, l.asked, w.Body)
			}
		}
	}
}

// The log says who released and acquired devices.
func TestLifecycle_LogsRequester(t *testing.T) {
	var logs bytes.Buffer
	h := NewHandler(Config{
		Feed: feed{lifecycle: new(fakeLifecycle)}, Metrics: http.NotFoundHandler(), Lifecycle: true, Logger: slog.New(slog.NewTextHandler(&logs, nil)),
	})
	for path, want := range map[string]string{
		"/-/release": `msg="devices released on request" for=15m0s client=10.0.0.7:4711 basic_auth_user=ada`,
		"/-/acquire": `msg="devices acquired on request" client=10.0.0.7:4711 basic_auth_user=ada`,
	} {
		r := httptest.NewRequest("POST", path, nil)
		r.Host, r.RemoteAddr = "localhost", "10.0.0.7:4711"
		r.SetBasicAuth("ada", "secret")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if !strings.Contains(logs.String(), want) || strings.Contains(logs.String(), "secret") {
			t.Errorf("%s\nwant %s", logs.String(), want)
		}
	}
}
