package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// fakeLifecycle notes what it is asked.
type fakeLifecycle struct {
	released snapshot.Release
	wait     time.Duration // until it is let go of
	asked    []time.Duration
	acquired int
}

func (l *fakeLifecycle) release(ctx context.Context, d time.Duration) error {
	l.asked = append(l.asked, d)
	if d == 0 {
		d = snapshot.DefaultRelease
	}
	l.released = snapshot.Release{Until: time.Now().Add(d), Sources: []string{"nvml"}, Devices: []string{"GPU-a", "GPU-b"}}
	select {
	case <-time.After(l.wait):
		return nil
	case <-ctx.Done():
		l.released.Sources, l.released.Devices, l.released.Holding = nil, nil, []string{"nvml: GPU-b"}
		return fmt.Errorf("%w: no answer from nvml: GPU-b", snapshot.ErrHeld)
	}
}

// ask sends a request and reads the answer.
func ask(l *fakeLifecycle, on bool, method, path string, headers ...string) (code int, a lifecycle, body string) {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "localhost:9450"
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	NewHandler(Config{Feed: feed{lifecycle: l}, Metrics: http.NotFoundHandler(), Lifecycle: on}).ServeHTTP(w, r)
	json.Unmarshal(w.Body.Bytes(), &a) //nolint:errcheck // not every answer is JSON
	return w.Code, a, w.Body.String()
}

func TestRelease(t *testing.T) {
	for _, c := range []struct {
		method, query string
		code          int
		asked         string
		until         time.Duration
	}{
		{"POST", "", 200, "[0s]", snapshot.DefaultRelease},
		{"PUT", "?for=", 200, "[0s]", snapshot.DefaultRelease},
		{"POST", "?for=90m", 200, "[1h30m0s]", 90 * time.Minute},
		{"POST", "?for=24h", 200, "[24h0m0s]", 24 * time.Hour},
		{"POST", "?for=25h", 400, "[]", 0},
		{"POST", "?for=-1s", 400, "[]", 0},
		{"POST", "?for=0s", 400, "[]", 0},
		{"POST", "?for=15", 400, "[]", 0},
		{"POST", "?for=soon", 400, "[]", 0},
		{"GET", "", 405, "[]", 0},
		{"DELETE", "", 405, "[]", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := new(fakeLifecycle)
			code, a, body := ask(l, true, c.method, "/-/release"+c.query)
			if code != c.code || fmt.Sprint(l.asked) != c.asked {
				t.Errorf("%s %s: %d, asked %v\n%s", c.method, c.query, code, l.asked, body)
			}
			switch code {
			case 200:
				if a.Status != "released" || a.Until == nil || time.Until(*a.Until) != c.until || len(a.Devices) != 2 || len(a.Sources) != 1 || a.StillHeld != nil {
					t.Errorf("%s %s: %s", c.method, c.query, body)
				}
			case 400:
				if a.Status != "refused" || len(a.Reasons) != 1 || !strings.Contains(a.Reasons[0], strings.TrimPrefix(c.query, "?for=")) {
					t.Errorf("%s %s: %s", c.method, c.query, body)
				}
			}
		})
	}
}

// A driver that hangs does not hold the request longer than a client waits, and is named.
func TestReleaseOfWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := &fakeLifecycle{wait: time.Hour}, time.Now()
		code, a, body := ask(l, true, "POST", "/-/release")
		if code != 504 || a.Status != "held" || len(a.StillHeld) != 1 || a.Until == nil || !strings.Contains(a.Reasons[0], "GPU-b") || time.Since(start) > 30*time.Second {
			t.Errorf("%d after %v: %s", code, time.Since(start), body)
		}
	})
}

func TestAcquire(t *testing.T) {
	l := new(fakeLifecycle)
	for _, c := range []struct {
		method   string
		code     int
		acquired int
	}{{"POST", 200, 1}, {"PUT", 200, 2}, {"GET", 405, 2}} {
		code, a, body := ask(l, true, c.method, "/-/acquire")
		if code != c.code || l.acquired != c.acquired || code == 200 && a.Status != "acquired" {
			t.Errorf("%s: %d, acquired %d times\n%s", c.method, code, l.acquired, body)
		}
	}
}

// Without the flag nothing happens, and the answer says why.
func TestLifecycleOff(t *testing.T) {
	for _, path := range []string{"/-/release", "/-/acquire"} {
		for _, method := range []string{"POST", "PUT", "GET"} {
			l := new(fakeLifecycle)
			code, _, body := ask(l, false, method, path)
			if code != 404 || l.asked != nil || l.acquired != 0 || !strings.Contains(body, "--web.enable-lifecycle") {
				t.Errorf("%s %s: %d %s", method, path, code, body)
			}
		}
	}
}

// A page of another site can not release the devices through somebody's browser.
func TestLifecycleOfAnotherSite(t *testing.T) {
	for _, path := range []string{"/-/release", "/-/acquire"} {
		l := new(fakeLifecycle)
		if code, _, body := ask(l, true, "POST", path, "Sec-Fetch-Site", "cross-site", "Origin", "https://else.example"); code != 403 || l.asked != nil || l.acquired != 0 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

// People and probes see that devices are released, and until when.
func TestReleasedIsShown(t *testing.T) {
	until := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	f := feed{started: true, lifecycle: &fakeLifecycle{released: snapshot.Release{Until: until, Holding: []string{"nvml: GPU-<b>"}}},
		sources: []snapshot.SourceHealth{{Name: "nvml", State: telemetry.SourceStateReleased}}}
	if w := get(t, f, "/readyz"); w.Code != 200 || !strings.Contains(w.Body.String(), "released until 2026-05-04T03:02:01Z") || !strings.Contains(w.Body.String(), `"state": "released"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if page := get(t, f, "/").Body.String(); !strings.Contains(page, "The devices are released until 2026-05-04T03:02:01Z; still held: nvml: GPU-&lt;b&gt;") {
		t.Errorf("%s", page)
	}
	for _, path := range []string{"/readyz", "/"} {
		if strings.Contains(get(t, feed{started: true}, path).Body.String(), "released") {
			t.Errorf("%s speaks of a release that is not on", path)
		}
	}
}
