package prom

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// leaving is a scraper that goes away at its first byte.
type leaving struct {
	http.ResponseWriter
	writes, longest int
}

func (l *leaving) Write(b []byte) (int, error) {
	l.writes++
	l.longest = max(l.longest, len(b))
	return 0, errors.New("gone")
}

// A scraper that goes away costs a buffer's worth of work, and leaves nothing behind for the next.
func TestScraperGoesAway(t *testing.T) {
	h := handler(node(40))
	want := get(t, h, "/metrics", "Accept", acceptText).Body.String()
	if len(want) < 3*bufferSize {
		t.Fatalf("a page of %d bytes only", len(want))
	}
	for range 5 {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Header.Set("Accept", acceptText)
		w := &leaving{ResponseWriter: httptest.NewRecorder()}
		h.ServeHTTP(w, r)
		if w.writes != 1 || w.longest > bufferSize+4096 {
			t.Errorf("%d writes, the longest of %d bytes", w.writes, w.longest)
		}
		if page := get(t, h, "/metrics", "Accept", acceptText).Body.String(); page != want {
			t.Errorf("the next page has %d bytes, want %d", len(page), len(want))
		}
	}
}

// Where nothing reads the host there are no series of it.
func TestWithoutHost(t *testing.T) {
	s := node(1)
	s.Host = nil
	if page := get(t, handler(s), "/metrics").Body.String(); strings.Contains(page, "system_") || !strings.Contains(page, "gpu_up{") {
		t.Error("want the device's series and none of the host")
	}
}

// counted gives one series that tells how often it was gathered.
type counted struct{ n float64 }

func (c *counted) Gather() ([]*dto.MetricFamily, error) {
	c.n++
	return []*dto.MetricFamily{{
		Name: proto.String("gathered"), Type: dto.MetricType_GAUGE.Enum(), Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: proto.Float64(c.n)}}},
	}}, nil
}

// The process' own series are gathered once a period, in whatever format they are asked for.
func TestProcessIsGatheredOnceAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Process{gatherer: new(counted), period: time.Minute}
		for _, want := range []string{"gathered 1", "gathered 2"} {
			for range 3 {
				text, open := string(p.render(Text).text), string(p.render(OpenMetrics).text)
				if !strings.Contains(text, want+"\n") || !strings.Contains(open, want+".0\n") || len(p.render(Protobuf).ends) != 1 {
					t.Errorf("%s and %s, want %s", text, open, want)
				}
				time.Sleep(15 * time.Second)
			}
			time.Sleep(30 * time.Second)
		}
	})
}
